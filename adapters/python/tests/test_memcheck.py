"""memcheck finds no leak and no access outside of a block in any way from Python into the library."""
import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import pytest
from process import Process

NATIVE_PATHS = pathlib.Path(__file__).with_name("native_paths.py")


@pytest.fixture(scope="module")
def findings(tmp_path_factory, program):
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
    # Undefined values: the library leaves large blocks to pages that the system clears, which
    # memcheck cannot know.
    memcheck = "valgrind --undef-value-errors=no --leak-check=full --num-callers=24 --xml=yes"
    memcheck += " --show-leak-kinds=definite,indirect --error-limit=no --xml-file="
    with Process(program, method="alsvm", novelty="none", refit="none") as process:
        paths = [sys.executable, str(NATIVE_PATHS), process.ctl]
        # The first run leaves compiled modules, which the second one is spared.
        subprocess.run(paths, env=env, check=True, stdout=subprocess.DEVNULL, timeout=60)
        env["PYTHONMALLOC"] = "malloc"
        words = (memcheck + str(folder / "xml")).split() + paths
        subprocess.run(words, env=env, check=True, stdout=subprocess.DEVNULL, timeout=150)
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
