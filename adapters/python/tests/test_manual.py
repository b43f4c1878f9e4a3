"""The manual's page: its snippets print what stands behind them, its sessions run, and what it
names exists.
"""
import builtins
import contextlib
import importlib
import inspect
import io
import pkgutil
import re
import sys

import pytest

import svmstream
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "cli"))
import sessions  # noqa: E402

PAGE = (ROOT / "src" / "manual" / "python.md").read_text(encoding="utf-8")
PRODUCER = (ROOT / "src" / "manual" / "producer.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def snippets(text):
    """(number, content) of the blocks that are run here: no files, which sessions run."""
    return [
        (i, content)
        for i, (kind, file, _, content) in enumerate(sessions.blocks(text))
        if kind == "python" and not file
    ]


def expected(snippet):
    """What a snippet prints: the comment behind a print, and the lines of comment below it."""
    lines, printing = [], False
    for line in snippet.splitlines():
        if printing and line.startswith("# "):
            lines.append(line[2:])
            continue
        printing = line.lstrip().startswith("print(")
        behind = re.search(r"\)\s+# (.*)$", line)
        if printing and behind:
            lines.append(behind.group(1))
    return "".join(line + "\n" for line in lines)


@pytest.mark.parametrize("text, least", [(PAGE, 6), (README, 1)], ids=["python.md", "README.md"])
def test_snippets(text, least, examples, tmp_path, monkeypatch):
    """One after the other, as a reader would, in a folder that has the examples. README shows
    whole outputs, whose numbers vary.
    """
    (tmp_path / "examples").symlink_to(examples)
    monkeypatch.chdir(tmp_path)
    names = {}
    assert len(snippets(text)) >= least
    for i, snippet in snippets(text):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(snippet, "block %d" % i, "exec"), names)
        pattern = sessions.pattern_of(expected(snippet), vary=text is README)
        assert pattern.fullmatch(out.getvalue()), (
            snippet,
            out.getvalue(),
        )


def test_a_snippet_that_prints_otherwise_fails():
    assert expected("print(1)   # 1\nx = 2  # no output\n    print(x)    # 2...\n") == "1\n2...\n"
    assert not sessions.pattern_of(expected("print(1)   # 1\n")).fullmatch("2\n")


@pytest.mark.parametrize("page", [PAGE, PRODUCER], ids=["python.md", "producer.md"])
def test_sessions(page, program, tmp_path, monkeypatch):
    monkeypatch.setattr(sessions, "PROGRAM", program)
    session = sessions.Session(str(tmp_path))
    try:
        for kind, file, vary, content in sessions.blocks(page):
            if file:
                (tmp_path / file).write_text(session.inward(content))
            for command, output in sessions.commands(content) if kind == "console" else []:
                good, got = session.step(command, output, vary)
                assert good, "%s\n---- expected\n%s---- got\n%s" % (command, output, got)
    finally:
        session.close()


def public_names():
    found = set(dir(svmstream))
    for info in pkgutil.iter_modules(svmstream.__path__):
        if info.name.startswith("_") or info.name == "__main__":
            continue
        module = importlib.import_module("svmstream." + info.name)
        for name, value in vars(module).items():
            found.add(name)
            if inspect.isclass(value):
                found |= set(dir(value))
                with contextlib.suppress(TypeError, ValueError):
                    found |= set(inspect.signature(value).parameters)
            if inspect.isfunction(value):
                found |= set(inspect.signature(value).parameters)
    return found


def test_every_name_exists():
    """What stands in backticks and looks like a name of Python."""
    known = public_names() | set(dir(builtins))
    prose = re.sub(r"^```.*?^```$", "", PAGE, flags=re.S | re.M)
    named = set(re.findall(r"`(?:\w+\.)*(\w+)(?:\([^`]*\))?`", prose))
    unknown = sorted(
        n for n in named if (re.search(r"_|[a-z][A-Z]|^[A-Z]\w+[a-z]", n)) and n not in known
    )
    import sklearn.utils.estimator_checks

    unknown = [n for n in unknown if not hasattr(sklearn.utils.estimator_checks, n)]
    assert not unknown
