"""Shared by the tests: the package that `make python` built, the program, the data sets.

Run one file with `tests/pytest adapters/python/tests/test_library.py`, or all with
`PYTHONPATH=build/python /usr/bin/python3 -m pytest adapters/python/tests`."""
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("SVMSTREAM_BUILD") or ROOT / "build")
if str(BUILD / "python") not in sys.path:
    sys.path.insert(0, str(BUILD / "python"))


@pytest.fixture(scope="session")
def root() -> pathlib.Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def build() -> pathlib.Path:
    """The build folder: svmstream, libsvmstream.a, python/."""
    return BUILD


@pytest.fixture(scope="session")
def program() -> str:
    """The path of the program `svmstream`."""
    return str(BUILD / "svmstream")


@pytest.fixture(scope="session")
def examples() -> pathlib.Path:
    """The folder examples/ with its data sets."""
    return pathlib.Path(os.environ.get("SVMSTREAM_EXAMPLES") or ROOT / "examples")


@pytest.fixture(scope="session")
def data() -> pathlib.Path:
    """The folder of real data sets; the test is skipped where there is none."""
    folder = pathlib.Path(os.environ.get("SVMSTREAM_DATA") or ROOT / "data")
    if not folder.is_dir():
        pytest.skip("no folder %s (make data)" % folder)
    return folder
