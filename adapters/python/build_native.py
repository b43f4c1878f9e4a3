"""Makes svmstream._native: cffi in API mode over the public headers, with the static library.

The declarations come from the headers themselves, by the C preprocessor, so that a new header or
function needs no change here. The library is looked for in this order:

1. SVMSTREAM_LIBRARY: a libsvmstream.a; SVMSTREAM_INCLUDE: its headers; SVMSTREAM_LIBS: what it is
   linked with. `make python` gives these three.
2. An installed library of the same version, by pkg-config (not inside of the project's own tree).
3. The sources: those of the project around this folder, or those that the sdist carries in
   `native`. The project's Makefile compiles them; its list of sources and flags is the only one.
"""
import contextlib
import os
import re
import shlex
import subprocess
import tempfile

from cffi import FFI

MODULE = "svmstream._native"
HERE = os.path.dirname(os.path.abspath(__file__))
PROJECT = os.path.normpath(os.path.join(HERE, "..", ".."))
CARRIED = os.path.join(HERE, "native")
VERSION = re.compile(r'^#define SVS_VERSION "(.*)"', re.M)

# Callbacks of the library that are written in Python: @ffi.def_extern() gives their bodies.
CALLBACKS = """
extern "Python" void svpy_outbox_event(void *user, const svs_outbox_event *event);
struct svpy_outbox_user { void *handle; int64_t first; };
void svpy_outbox_score(void *user, int64_t sample, const void *map, size_t size);
"""
# The scores of a reply follow each other: noting the number of the first in C spares a call of
# Python, which takes the interpreter's lock, for each row.
SOURCE = """
#include "svmstream/svmstream.h"

struct svpy_outbox_user {
    void *handle;  /* of the Outbox */
    int64_t first; /* number of the first score of the present reply, or -1 */
};

static void svpy_outbox_score(void *user, int64_t sample, const void *map, size_t size) {
    struct svpy_outbox_user *u = user;
    (void)map, (void)size;
    if (u->first < 0)
        u->first = sample;
}
"""


def source_tree():
    """The folder with the Makefile, the headers and the library's sources."""
    return CARRIED if os.path.isdir(CARRIED) else PROJECT


def include_folder():
    return os.environ.get("SVMSTREAM_INCLUDE") or os.path.join(source_tree(), "include")


def version():
    with open(os.path.join(include_folder(), "svmstream", "svmstream.h"), encoding="utf-8") as f:
        return VERSION.search(f.read()).group(1)


def make(*arguments):
    """Runs make in the source tree. An outer make's flags would start a build of its own."""
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    command = ["make", "--no-print-directory", "-s", "-C", source_tree(), *arguments]
    return subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout


def carried():
    """What the sdist takes along: pairs of a file and its name under `native`."""
    tree = source_tree()
    return [(os.path.join(tree, name), name) for name in make("library-files").split()]


def pkg_config(*arguments):
    try:
        run = subprocess.run(
            ["pkg-config", *arguments, "svmstream"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=False,
        )
    except OSError:
        return None
    return run.stdout.strip() if run.returncode == 0 else None


def installed():
    """(library, headers, libraries to link) of an installed library of this version, or None."""
    if source_tree() == PROJECT or pkg_config("--modversion") != version():
        return None
    library = os.path.join(pkg_config("--variable=libdir"), "libsvmstream.a")
    if not os.path.exists(library):
        return None
    libs = [flag for flag in shlex.split(pkg_config("--libs", "--static")) if flag != "-lsvmstream"]
    return library, pkg_config("--variable=includedir"), libs


def built():
    """The same three, of the library compiled here."""
    folder = os.environ.get("SVMSTREAM_BUILD_DIR") or os.path.join(source_tree(), "build")
    # The project refuses every warning; another compiler may have more of them.
    make(
        "-j%d" % (os.cpu_count() or 1),
        "WARN=-w",
        "BUILD=" + folder,
        os.path.join(folder, "libsvmstream.a"),
    )
    return (
        os.path.join(folder, "libsvmstream.a"),
        os.path.join(source_tree(), "include"),
        make("library-flags").split(),
    )


def library():
    """(static library, folder of the headers, flags that link what the library itself needs)."""
    if os.environ.get("SVMSTREAM_LIBRARY"):
        return (
            os.environ["SVMSTREAM_LIBRARY"],
            include_folder(),
            os.environ.get("SVMSTREAM_LIBS", "").split(),
        )
    return installed() or built()


def preprocess(include, *flags):
    """The public headers, preprocessed, without those of the system: cffi knows their types."""
    with tempfile.TemporaryDirectory() as empty:
        for name in sorted(os.listdir(os.path.join(include, "svmstream"))):
            with open(os.path.join(include, "svmstream", name), encoding="utf-8") as f:
                for header in re.findall(r"^\s*#\s*include\s*<(.*)>", f.read(), re.M):
                    os.makedirs(os.path.dirname(os.path.join(empty, header)), exist_ok=True)
                    with open(os.path.join(empty, header), "w", encoding="utf-8"):
                        pass
        # Without __GNUC__ the headers leave out attributes.
        command = [
            *shlex.split(os.environ.get("CC") or "cc"),
            "-E",
            "-P",
            "-nostdinc",
            "-undef",
            *flags,
            "-I",
            empty,
            "-I",
            include,
            os.path.join(include, "svmstream", "svmstream.h"),
        ]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def declarations(include):
    """The text for cffi: types and functions, then every macro that is a number."""
    macros = re.findall(
        r"^#define (SVS_[A-Z0-9_]+) (\(?-?\d[\dA-Za-z.+]*\)?)$", preprocess(include, "-dM"), re.M
    )
    numbers = [
        "#define %s ..." % name
        for name, text in macros
        if re.fullmatch(r"\(?-?(0x[\dA-Fa-f]+|\d+)[uUlL]*\)?", text)
    ]
    return "\n".join([preprocess(include), *numbers, CALLBACKS])


def prepare(extension, folder):
    """Completes setuptools' extension: its C source, kept in `folder`, and its libraries."""
    archive, include, libs = library()
    builder = FFI()
    builder.cdef(declarations(include))
    builder.set_source(MODULE, SOURCE)
    source = os.path.join(folder, MODULE + ".c")
    os.makedirs(folder, exist_ok=True)
    with contextlib.redirect_stdout(None):  # it says whether the source changed
        builder.emit_c_code(source)
    extension.sources, extension.depends, extension.extra_objects = [source], [archive], [archive]
    extension.include_dirs = [include]
    extension.extra_compile_args = ["-fvisibility=hidden"]
    # What is installed needs no lines of source; `make python` keeps them for debuggers and
    # memcheck.
    strip = [] if "SVMSTREAM_LIBRARY" in os.environ else ["-Wl,--strip-debug"]
    extension.extra_link_args = [*libs, "-Wl,--exclude-libs,ALL", *strip]
