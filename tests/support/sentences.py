#!/usr/bin/python3
"""How long the sentences of the documents are: for `make metrics` and its rules.

A sentence ends with . ! or ? before white space, with its paragraph or its list item; a colon ends one only before a list or a block of code, a
semicolon never. Inline code counts as one word, the address of a link as none. Headings, tables and blocks of code are left out, but a cell of a
table has no second sentence.
"""
import glob
import os
import re
import statistics
import subprocess

MEDIAN, LONGEST = 16, 40
COLUMNS = 100  # of a line of prose in Markdown; a row of a table cannot be broken
ABBREVIATIONS = ("e.g.", "i.e.", "etc.", "vs.", "cf.", "approx.", "resp.", "incl.", "al.", "Fig.", "Eq.", "Sect.", "...")
END = re.compile(r"(\S*[.!?][)\"'*_]*)\s+(?=\S)")


def split(text):
    """The sentences of one paragraph, list item or option."""
    text = re.sub(r"<!--.*?-->", " ", text, flags=re.S)
    text = re.sub(r"(`+)(?:(?!\1).)+\1", "CODE", text, flags=re.S)
    text = re.sub(r"!?\[([^\]]*)\]\([^)\s]*\)", r"\1", text)
    text = " ".join(text.split())
    found, start = [], 0
    for m in END.finditer(text):
        word = m.group(1).lstrip("(\"'*_")
        if not word.rstrip(")\"'*_,;:").endswith(ABBREVIATIONS):
            found.append(text[start:m.end()].strip())
            start = m.end()
    return [s for s in found + [text[start:]] if words(s)]


def words(sentence):
    return sum(bool(re.search(r"\w", w)) for w in sentence.split())


def markdown(text):
    """The sentences of a document."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    found, block = [], []

    def end():
        found.extend(split(" ".join(block)))
        block.clear()

    code = False
    for line in text.splitlines():
        if re.match(r"\s*(```|~~~)", line):
            end()
            code = not code
        elif code:
            continue
        elif not line.strip() or re.match(r"#+ |\s*\||\s*<", line) or (line.startswith("    ") and not block):
            end()
        else:
            item = re.match(r"\s*(?:[-*+]|\d+\.)\s+", line)
            if item:
                end()
                line = line[item.end():]
            block.append(line.strip().lstrip("> "))
    end()
    return found


def long_cells(text):
    """Cells of tables with several sentences."""
    text = re.sub(r"^```.*?^```", "", re.sub(r"<!--.*?-->", "", text, flags=re.S), flags=re.M | re.S)
    cells = [re.sub(r"^\d+[a-z]?\. ", "", c.strip()) for line in re.findall(r"^\s*\|(.*)\|\s*$", text, re.M) for c in re.split(r"(?<!\\)\|", line)]
    return [c for c in cells if len(split(c)) > 1]


def help_text(text):
    """The sentences of a --help: paragraphs, and the text of each option; the settings have their own entry, commands and the usage are code."""
    text = text.split("\nSettings (")[0]
    found, block = [], []

    def end():
        found.extend(split(" ".join(block)))
        block.clear()

    option = False
    for line in text.splitlines():
        begins = re.match(r" {2,4}(?:-\S|[a-z]\S* {3})", line)
        inside = line.startswith(" ")
        if not line.strip() or re.match(r"[Uu]sage:", line):
            end()
            option = False
        elif begins:
            end()
            option = True
            block.extend(re.split(r" {2,}", line.strip(), maxsplit=1)[1:])
        elif inside and option and len(line) - len(line.lstrip()) > 4:
            block.append(line.strip())
        elif inside:
            end()
            option = False
        elif not re.fullmatch(r"[\w ()-]+(?:\(.*\))?:", line):
            if option:
                end()
            option = False
            block.append(line)
        else:
            end()
    end()
    return found


def run(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout


def helps(build):
    """(program, text of all its helps)"""
    program = os.path.join(build, "svmstream")
    overview = run(program, "help")
    commands = re.findall(r"^  (\w+) ", overview.partition("Commands:")[2].partition("\n\n")[0], re.M)
    yield "svmstream", [overview] + [run(program, c, "--help") for c in commands]
    for adapter, verbs in (("mqtt", [[]]), ("http", [[]]), ("kafka", [["run"], ["feed"], ["sums"]]), ("redis", [["run"], ["feed"], ["sums"]])):
        name = "%s-%s" % (program, adapter)
        if os.access(name, os.X_OK):  # its library may be absent
            yield "svmstream-" + adapter, [run(name, *v, "--help") for v in verbs]


def settings(build):
    """The sentence of each setting."""
    table = run(os.path.join(build, "svmstream"), "help-markdown", "settings").partition("table: settings")[2]
    return [s for text in re.findall(r"^- `[^`]+` \([^\n]*?\): ([^\n]*?)\.? Takes [^\n]*$", table, re.M) for s in split(text)]


def documents(build):
    """(name, sentences) of all that is read by people."""
    read = lambda path: open(path, encoding="utf-8").read()
    found = [(p, markdown(read(p))) for p in ("README.md", "CHANGELOG.md", "examples/README.md", ".github/CONTRIBUTING.md", ".github/SECURITY.md")]
    for path in sorted(glob.glob("src/manual/*.md")):
        name = os.path.basename(path)
        found.append((name if name == "settings.md" else name[:-3], markdown(read(path))))
    for name, texts in helps(build):
        found.append((name, list(dict.fromkeys(s for t in texts for s in help_text(t)))))
    return found + [("settings", settings(build))]


def figures(sentences):
    """Number, median, longest, and how many are over the limit."""
    lengths = [words(s) for s in sentences] or [0]
    return len(sentences), statistics.median(lengths), max(lengths), sum(n > LONGEST for n in lengths)


def rows(build):
    """For the table: (what, figures)."""
    return [("sentences of %s: number, median, longest, over %d" % (name, LONGEST), "%d, %g, %d, %d" % figures(s)) for name, s in documents(build)]


def wide_lines(text):
    """Lines of prose that are too wide: code and tables are as they are."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    return [line for line in prose.split("\n") if len(line) > COLUMNS and not line.startswith(("|", "    "))]


def too_long(build):
    """Documents whose sentences are too long or stand in a row in a cell, and lines that are too wide."""
    texts = {}
    for path in ["README.md", "CHANGELOG.md", "examples/README.md"] + sorted(glob.glob("src/manual/*.md") + glob.glob(".github/*.md")):
        with open(path, encoding="utf-8") as f:
            texts[path] = f.read()
    found = ["%s: several sentences in a cell: %s" % (p, c[:120]) for p, text in texts.items() for c in long_cells(text)]
    found += ["%s: more than %d columns: %s" % (p, COLUMNS, line) for p, text in texts.items() for line in wide_lines(text)]
    for name, sentences in documents(build):
        _, median, _, over = figures(sentences)
        found += ["%s: no sentences were found" % name] if not sentences else []
        found += ["%s: a median of %g words a sentence" % (name, median)] if median > MEDIAN else []
        found += ["%s: %d words: %s" % (name, words(s), s[:160]) for s in sentences if words(s) > LONGEST]
    return found


def self_test():
    """What the splitter takes for sentences."""
    found = []

    def expect(kind, text, lengths):
        got = [words(s) for s in kind(text)]
        found.extend(["%r: %r, not %r" % (text, got, lengths)] if got != lengths else [])

    expect(split, "One two. Three four five! Six?", [2, 3, 1])
    expect(split, "Version 0.1.0 keeps e.g. files, i.e. all of them, vs. none. By .003 it trails.", [11, 4])
    expect(split, "At rows 1, 2, 4, ... and at the end; then one more: the last.", [14])
    expect(split, "`svmstream ctl config C=1` is one word. `a` and ``b`c`` too.", [4, 4])
    expect(split, "See [the page of this](doc/page.md) (it is short.) Then go.", [8, 2])
    found.extend(["cells"] if long_cells("| a. b | A b. C d | 0.1.0, e.g. this |\n") != ["a. b", "A b. C d"] else [])
    found.extend(["columns"] if wide_lines("a " * 51 + "\n| " + "b " * 60 + "\n```\n" + "c " * 60 + "\n```\n") != ["a " * 51] else [])
    expect(split, "It is **done.** lower case begins here.", [3, 4])
    expect(split, "A + B - c / (1 - h) has six words.", [8])
    expect(markdown, "# Not this one\n\nThese are:\n- one item of\n  two lines;\n- another. Twice.\n\n| no | cell. |\n\n```\nno code. here\n```\nAfter it.\n",
           [2, 5, 1, 1, 2])
    expect(markdown, "Over <!-- not. this -->two\nlines.\n\n1. A list.\n2. Goes on.\n", [3, 2, 2])
    expect(help_text, "Usage: x [options]\n\nDoes a thing. Then another.\n\n  x --a 3   # no. code\n\nOptions:\n  --a N     the first\n            of them\n  --long.one WORD\n"
                      "            next line. Two.\n\nAt the end.\n", [3, 2, 4, 2, 1, 3])
    return found


if __name__ == "__main__":  # sentences.py [DOCUMENT...]: each sentence over the limit, and the figures, of these
    import sys
    for name, sentences in documents(os.environ.get("SVMSTREAM_BUILD", "build")):
        if name in sys.argv[1:] or len(sys.argv) == 1:
            _, median, longest, over = figures(sentences)
            print("%-20s %4d sentences, median %g, longest %d, %d over %d" % (name, len(sentences), median, longest, over, LONGEST))
            for s in sentences if len(sys.argv) > 1 else []:
                if words(s) > LONGEST or (words(s) > 25 and median > MEDIAN):
                    print("  %d: %s" % (words(s), s))
