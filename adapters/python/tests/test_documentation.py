"""Docstrings: their examples run, every public name has one with an example or shapes,
`help(svmstream)` gives a tour; mypy is content.
"""
import contextlib
import doctest
import importlib
import inspect
import os
import pkgutil
import pydoc
import re
import subprocess
import sys

import pytest

import svmstream
from conftest import BUILD, ROOT

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = ["svmstream"] + [
    "svmstream." + m.name for m in pkgutil.iter_modules(svmstream.__path__) if m.name != "_native"
]
# What the docstring of a class or function has: an example, or words for its shapes and units.
SHAPES = re.compile(r">>>|\(n\b|\bn\b|rows?\b|seconds|iterator|bytes|dict|list")
PACKAGE = ROOT / "adapters" / "python"

USER_PROGRAM = '''
import numpy as np
import svmstream
from svmstream import datasets, errors


def accuracy(path: str) -> float:
    model = svmstream.Auto(settings={"window": 500})
    right = 0
    for x, y in datasets.rows(path):
        right += bool(model.predict_one(x) == y)
        model.learn_one(x, y)
    step = model.step({"a": 1.0, "b": None, "c": "word"}, "up", w=2.0, id=7, ts=1.7e9)
    texts: list[str] = [alert.text for alert in step.alerts]
    try:
        count: int = model.forget(7)
    except errors.UnknownIdError as error:
        code: str = error.code
    X = np.zeros((10, 3), dtype=np.float32)
    model = svmstream.Auto().partial_fit(X, ["a", "b"] * 5)
    again: svmstream.Auto = svmstream.Auto.from_bytes(model.to_bytes())
    result = svmstream.evaluate([(X[0], "a")], again, limit=5)
    figure: float = result.curve[0].model
    table: str = result.table
    return right / model.seen + figure


def client(address: str) -> int:
    with svmstream.Stream(address, src="press-03", timeout=5) as stream:
        score = stream.send({"a": 1.0, "b": None}, "up", id=3)
        for alert in stream.alerts(timeout=1.0):
            text: str = alert.text
        results = [r for r in stream.send_many(datasets.rows("x.csv")) if not isinstance(r, Exception)]
        probability: float = results[0].proba["up"]
        model = svmstream.Model.load("model.msgpack")
        return stream.forget(3) + len(score.scores) + model.version


async def tasks() -> None:
    async with svmstream.AsyncStream() as stream:
        score = await stream.send([1.0, 2.0], 1)
        async for event in stream.models(timeout=1.0):
            print(event.topic, score.p)


reveal_type(svmstream.Auto().learn_one({"a": 1}, 2))
reveal_type(svmstream.evaluate([], svmstream.Monitor()).curve)
'''
WRONG_PROGRAM = '''
import svmstream
svmstream.Auto(maxclasses=3)
svmstream.evaluate([])
svmstream.Auto().forget()
x: int = svmstream.Auto().report()
svmstream.Stream("tcp://host").send()
'''


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=FLAGS)
    assert not failed


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    assert (
        sum(len(t.examples) for m in MODULES for t in finder.find(importlib.import_module(m))) > 60
    )


def owned(value):
    """Defined by the package."""
    return str(getattr(value, "__module__", "") or "").startswith("svmstream")


def public():
    """(dotted name, object) of everything that a user may reach under a public name."""
    for module_name in MODULES:
        if any(part.startswith("_") for part in module_name.split(".")):
            continue
        module = importlib.import_module(module_name)
        yield module_name, module
        for name in getattr(module, "__all__", [n for n in vars(module) if not n.startswith("_")]):
            value = getattr(module, name)
            if not owned(value) or not (inspect.isclass(value) or inspect.isfunction(value)):
                continue
            yield module_name + "." + name, value
            for member in dir(value) if inspect.isclass(value) else ():
                found = inspect.getattr_static(value, member)
                if not member.startswith("_") and not isinstance(found, (int, str, float, tuple)):
                    yield module_name + "." + name + "." + member, getattr(value, member, found)


def test_every_public_name_has_a_docstring():
    lacking = []
    for name, value in public():
        defined = getattr(value, "__objclass__", None) or value
        if isinstance(value, property):
            defined = value.fget
        if not owned(defined) and not isinstance(value, property):
            continue
        text = inspect.getdoc(value) or ""
        if len(text.split()) < 3:
            lacking.append(name)
    assert not lacking


def test_what_is_exported_states_shapes_or_shows_an_example():
    lacking = []
    for name, value in public():
        if name.rsplit(".", 1)[0] not in MODULES or inspect.ismodule(value):
            continue
        if inspect.isclass(value) and issubclass(value, BaseException):
            continue
        if not SHAPES.search(inspect.getdoc(value) or ""):
            lacking.append(name)
    assert not lacking


def test_help_gives_a_tour():
    text = pydoc.plain(pydoc.render_doc(svmstream))
    assert not re.search(r"PYTHON|<unprintable|object at 0x", text.split("PACKAGE CONTENTS")[0])
    for name in svmstream.__all__:
        assert re.search(r"\b%s\b" % name, svmstream.__doc__), name + " is not in the tour"
    assert svmstream.__doc__.count(">>>") > 8
    assert all(len(line) <= 100 for line in svmstream.__doc__.splitlines())


def mypy(*words, folder):
    cache = BUILD / "obj" / "mypy"
    env = dict(os.environ, MYPYPATH=str(PACKAGE), PYTHONPATH="")
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--no-error-summary",
            "--cache-dir",
            str(cache),
            *words,
        ],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module", autouse=False)
def checker():
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed (Debian: mypy)")


def test_the_package_is_typed(checker):
    done = mypy("-p", "svmstream", folder=PACKAGE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_programs_that_use_it_are_checked(checker, tmp_path):
    (tmp_path / "program.py").write_text(USER_PROGRAM)
    (tmp_path / "wrong.py").write_text(WRONG_PROGRAM)
    done = mypy("program.py", "wrong.py", folder=tmp_path)
    good = [line for line in done.stdout.splitlines() if line.startswith("program.py")]
    assert not [line for line in good if ": error:" in line], done.stdout
    revealed = [line.split("Revealed type is ")[1] for line in good if "Revealed" in line]
    assert "Auto" in revealed[0] and "Point" in revealed[1], revealed
    wrong = {
        int(line.split(":")[1])
        for line in done.stdout.splitlines()
        if line.startswith("wrong.py") and ": error:" in line
    }
    assert wrong == {3, 4, 5, 6, 7}, done.stdout


def test_it_says_that_it_is_typed():
    assert (BUILD / "python" / "svmstream" / "py.typed").exists()
