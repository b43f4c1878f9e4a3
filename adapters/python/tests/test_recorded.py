"""Learners that a release saved (tests/recorded): this version loads them and continues; a build of
that release with the same libraries does so bit for bit.
"""
import gzip
import json
import os
import subprocess
import sys

import pytest

import svmstream

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDED = os.path.normpath(os.path.join(HERE, "..", "..", "..", "tests", "recorded"))
RELEASES = [n for n in sorted(os.listdir(RECORDED)) if os.path.isdir(os.path.join(RECORDED, n, "python"))]


def test_the_release_is_recorded(root):
    """From the day on that the change log gives to it."""
    version = svmstream.__version__.partition("+")[0]
    if "\n## %s (2" % version not in (root / "CHANGELOG.md").read_text():
        pytest.skip("%s is not released" % version)
    assert version in RELEASES, "tests/recorded/record --release makes the recordings"


@pytest.fixture(scope="module", params=RELEASES)
def release(request, build):
    """(what was expected, what this version makes of it, is it the same version and machine)"""
    sys.path.insert(0, RECORDED)
    import recorded

    folder = os.path.join(RECORDED, request.param, "python")
    done = subprocess.run(
        [sys.executable, os.path.join(RECORDED, "record_python"), "--continue", folder],
        env=dict(os.environ, **recorded.PLAIN, PYTHONPATH=str(build / "python")),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with gzip.open(os.path.join(folder, "expected.json.gz")) as f:
        expected = json.load(f)
    was, now = recorded.recorded_with(request.param), recorded.built_with()
    return expected, json.loads(done.stdout), was == now


def test_all_of_it_is_loaded(release):
    expected, found, _ = release
    assert len(found) >= 8
    for file, result in found.items():
        was = expected[file.split(".")[0]]
        assert result["class"] == was["class"], file
        assert len(result["next"]) == len(was["next"]), file


def test_it_continues_bit_for_bit(release):
    expected, found, same = release
    if not same or expected["version"] != svmstream.__version__.partition("+")[0]:
        pytest.skip("another version, compiler or library computes other bits")
    for file, result in found.items():
        was = expected[file.split(".")[0]]
        assert result["fingerprint"] == was["fingerprint"], file
        assert result["next"] == was["next"], file
