"""The wheel and the sdist, installed into an empty virtual environment and used from outside of the
project.

No network. The library is compiled once: the wheel takes the one of the build folder, and the sdist
first takes one installed by `make install`. With FAULT_LONG=1 (`make fault`) the sdist also compiles
the sources that it carries, which takes a minute."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

LEARN = """
import os, sys
import svmstream
assert svmstream.__file__.startswith(sys.prefix), svmstream.__file__
learner = svmstream.ALSVM(seed=1)
for i in range(60):
    learner.learn_one({"a": i % 2 - 0.5, "b": i % 7}, "odd" if i % 2 else "even")
assert learner.predict_one({"a": 0.5, "b": 3}) == "odd"
print("learned with", svmstream.__version__)
"""


def run(*command, cwd, codes=(0,), **variables):
    """The output of a command that must end with one of the codes, without make's variables and
    the package of the build folder.
    """
    drop = (
        "MAKEFLAGS",
        "MFLAGS",
        "MAKELEVEL",
        "PYTHONPATH",
        "PYTHONWARNINGS",
        "PYTHONDONTWRITEBYTECODE",
    )
    env = {k: v for k, v in os.environ.items() if k not in drop}
    env.update(PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_CACHE_DIR="1", CFLAGS="-O0", **variables)
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=env,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=600,
        check=False,
    )
    assert done.returncode in codes, "%s\n%s" % (" ".join(map(str, command)), done.stdout[-6000:])
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("packages")


@pytest.fixture(scope="module")
def archives(folder, root, build):
    """(wheel, sdist) as `python3 -m build` makes them: the wheel comes from the sdist. The
    project's folder stays clean.
    """
    project = folder / "project"
    shutil.copytree(
        root / "adapters/python",
        project / "adapters/python",
        ignore=shutil.ignore_patterns("tests", "build", "dist", "*.egg-info", "__pycache__"),
    )
    for name in ("Makefile", "include", "src"):
        (project / name).symlink_to(root / name)
    libs = run("make", "-s", "--no-print-directory", "library-flags", cwd=root)
    run(
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--outdir",
        folder / "dist",
        project / "adapters/python",
        cwd=folder,
        SVMSTREAM_LIBRARY=str(build / "libsvmstream.a"),
        SVMSTREAM_LIBS=libs.strip(),
    )
    (wheel,), (sdist,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
    return wheel, sdist


@pytest.fixture(scope="module")
def python(folder):
    """The interpreter of a virtual environment that sees Debian's numpy and cffi."""
    run(sys.executable, "-m", "venv", "--system-site-packages", folder / "venv", cwd=folder)
    return folder / "venv/bin/python"


def install(python, archive, folder, **variables):
    run(
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-build-isolation",
        "--no-deps",
        "--force-reinstall",
        archive,
        cwd=folder,
        **variables,
    )
    return run(python, "-c", LEARN, cwd=folder)


def test_the_wheel_holds_what_it_needs(archives, root):
    wheel, _ = archives
    assert "-cp39-abi3-" in wheel.name, "one wheel for every Python from 3.9 on"
    names = zipfile.ZipFile(wheel).namelist()
    modules = {
        "svmstream/" + path.name for path in (root / "adapters/python/svmstream").glob("*.*")
    }
    assert modules <= set(names)
    assert not [
        name for name in names if not name.startswith("svmstream")
    ], "nothing beside the package"


def test_the_wheel_learns(archives, python, folder):
    assert "learned" in install(python, archives[0], folder)
    (native,) = (folder / "venv").glob("lib/python*/site-packages/svmstream/_native*.so")
    needed = run("objdump", "-p", native, cwd=folder)
    assert "NEEDED" in needed and "libsvmstream" not in needed, "the library is inside"
    check = run(python, "-m", "pip", "check", cwd=folder, codes=(0, 1))
    assert "svmstream" not in check, "other packages of the machine may lack what they like"


def test_the_sdist_carries_all_sources(archives, folder):
    """What each carried source and header includes of the project is carried, too; and so is what
    make builds it from.
    """
    with tarfile.open(archives[1]) as packed:
        packed.extractall(folder / "sdist")
    (native,) = (folder / "sdist").glob("svmstream-*/native")
    sources = [path for path in native.rglob("*.[ch]")]
    assert sum(path.suffix == ".c" for path in sources) > 100
    for source in sources:
        for name in re.findall(r'^\s*#\s*include "(.*)"', source.read_text(), re.M):
            around = (native / "src", native / "include", source.parent)
            assert any((place / name).exists() for place in around), "%s of %s" % (
                name,
                source.relative_to(native),
            )
    objects = run(
        "make",
        "-n",
        "BUILD=" + str(folder / "none"),
        str(folder / "none/libsvmstream.a"),
        cwd=native,
    )
    assert objects.count("-MMD -MP -c") == sum(path.suffix == ".c" for path in sources)


def test_the_sdist_finds_an_installed_library(archives, python, folder, root, build):
    stage = folder / "stage"
    for part in ("lib/pkgconfig", "include"):
        (stage / part).mkdir(parents=True)
    shutil.copytree(root / "include/svmstream", stage / "include/svmstream")
    shutil.copy(build / "libsvmstream.a", stage / "lib")
    run(
        "make",
        "-s",
        "BUILD=" + str(folder / "pc"),
        "PREFIX=" + str(stage),
        str(folder / "pc/svmstream.pc"),
        cwd=root,
    )
    shutil.copy(folder / "pc/svmstream.pc", stage / "lib/pkgconfig")
    # A build of the carried sources would fail: make is not found.
    tools = folder / "tools"
    tools.mkdir()
    (tools / "make").write_text("#!/bin/sh\necho the library was compiled >&2; exit 1\n")
    (tools / "make").chmod(0o755)
    assert "learned" in install(
        python,
        archives[1],
        folder,
        PKG_CONFIG_PATH=str(stage / "lib/pkgconfig"),
        PATH="%s:%s" % (tools, os.environ["PATH"]),
    )


if "FAULT_LONG" in os.environ:

    def test_the_sdist_builds_the_library(archives, python, folder):
        nowhere = str(folder / "nowhere")
        assert "learned" in install(
            python, archives[1], folder, PKG_CONFIG_PATH=nowhere, PKG_CONFIG_LIBDIR=nowhere
        )


def test_the_version_is_one(archives):
    version = re.search(r"svmstream-([0-9.]+)-", archives[0].name).group(1)
    assert pathlib.Path(archives[1]).name == "svmstream-%s.tar.gz" % version
