"""The build of the package: the version is that of the library's header, and the extension contains
the library.

An sdist carries what `make libs` needs (see build_native.py), so it builds where no library is
installed."""
import os
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import build_native  # noqa: E402


class NativeModule(build_ext):
    """Makes the C source, and the library where there is none, when the extension is built.

    The keyword cffi_modules would do it for an sdist and for metadata, too."""

    def build_extension(self, ext):
        build_native.prepare(ext, self.build_temp)
        super().build_extension(ext)


class SourceDistribution(sdist):
    """Adds the library's sources, which lie outside of this folder, under `native`."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for source, name in build_native.carried():
            target = os.path.join(base_dir, "native", name)
            self.mkpath(os.path.dirname(target))
            self.copy_file(source, target)


setup(
    version=build_native.version(),
    ext_modules=[Extension(build_native.MODULE, [], py_limited_api=True)],
    cmdclass={"build_ext": NativeModule, "sdist": SourceDistribution},
    # The extension uses the limited C API: one wheel serves every Python from 3.9 on.
    options={"bdist_wheel": {"py_limited_api": "cp39"}},
    zip_safe=False,
)
