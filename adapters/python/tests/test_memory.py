"""Memory: hundreds of thousands of rows leave no more of it in use, and memcheck finds no leak and
no access outside of a
block in any way from Python into the library."""
import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import pytest

import svmstream

NATIVE_PATHS = pathlib.Path(__file__).with_name("native_paths.py")


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


ROWS = [
    (
        {name: float((i * p) % 101) for name, p in zip("abcdefgh", (3, 7, 11, 13, 17, 19, 23, 29))},
        i % 3 == 0,
    )
    for i in range(1009)
]
LEARN = {
    "ALSVM": (svmstream.ALSVM, 300_000, lambda m, x, y, i: m.learn_one(x, y)),
    "ALSVM with ids and results": (
        svmstream.ALSVM,
        60_000,
        lambda m, x, y, i: (m.step(x, None, id=i), m.label(i, y)),
    ),
    "Monitor": (lambda: svmstream.Monitor(interval=60), 6_000, lambda m, x, y, i: m.step(x)),
}


@pytest.mark.parametrize("name", LEARN)
def test_rows_leave_nothing_behind(name):
    make, count, learn = LEARN[name]
    model = make()

    def go(first, last):
        for i in range(first, last):
            learn(model, *ROWS[i % len(ROWS)], i)

    go(0, count // 3)
    before = resident()
    go(count // 3, 4 * count // 3)
    grown = resident() - before
    # A leak of 4 bytes a row of ALSVM is more; the allocators' own ups and downs are a few hundred
    # KiB.
    assert grown < 1 << 20, "%d bytes more after %d rows: %.2f a row" % (
        grown,
        count,
        grown / count,
    )


def test_a_block_leaves_nothing_behind():
    import numpy as np

    x = np.array([list(row.values()) for row, _ in ROWS])
    y = np.array([label for _, label in ROWS])
    model = svmstream.ALSVM()
    for _ in range(100):
        model.partial_fit(x, y).predict_proba(x)
    before = resident()
    for _ in range(300):
        model.partial_fit(x, y).predict_proba(x)
    assert resident() - before < 1 << 20


def test_objects_are_freed():
    def go(count):
        for _ in range(count):
            svmstream.ALSVM.from_bytes(svmstream.ALSVM().learn_one(*ROWS[0]).to_bytes()).learn_one(
                *ROWS[1]
            )

    go(200)
    before = resident()
    go(300)
    assert resident() - before < 1 << 20


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    """What memcheck found with a function of the extension in its stack: (kind, functions)."""
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is absent")
    folder = tmp_path_factory.mktemp("memcheck")
    env = dict(
        os.environ,
        PYTHONPYCACHEPREFIX=str(folder),
        PYTHONDONTWRITEBYTECODE="",
        PYTHONWARNINGS="ignore",
        OPENBLAS_NUM_THREADS="1",
    )
    program = [sys.executable, str(NATIVE_PATHS)]
    subprocess.run(
        program, env=env, check=True, stdout=subprocess.DEVNULL
    )  # also leaves compiled modules
    # Undefined values: the library leaves large blocks to pages that the system clears, which
    # memcheck cannot know.
    memcheck = [
        "valgrind",
        "--undef-value-errors=no",
        "--leak-check=full",
        "--show-leak-kinds=definite,indirect",
        "--num-callers=24",
        "--error-limit=no",
        "--xml=yes",
        "--xml-file=%s" % (folder / "xml"),
    ]
    subprocess.run(
        memcheck + program,
        env=dict(env, PYTHONMALLOC="malloc"),
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=150,
    )
    found = []
    for error in xml.etree.ElementTree.parse(folder / "xml").getroot().iter("error"):
        frames = [
            frame.findtext("fn", "?")
            for frame in error.iter("frame")
            if "_native" in frame.findtext("obj", "")
        ]
        if frames:
            found.append((error.findtext("kind"), frames))
    return found


def test_memcheck_finds_the_leak_on_purpose(findings):
    assert any(
        "svs_learner_new" in frame
        for kind, frames in findings
        for frame in frames
        if kind == "Leak_DefinitelyLost"
    )


def test_memcheck_finds_nothing_else(findings):
    others = [
        finding
        for finding in findings
        # Once, by cffi, when the module is loaded.
        if "PyInit__native" not in finding[1]
        and not any("svs_learner_new" in frame for frame in finding[1])
    ]
    assert not others
