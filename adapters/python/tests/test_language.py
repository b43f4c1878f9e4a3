"""Every source of the package is Python 3.9, and uses nothing of the standard library that came
later.
"""
import ast
import pathlib

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
SOURCES = sorted([*PACKAGE.glob("*.py"), *PACKAGE.glob("svmstream/*.py")])

# Modules, names of modules, keywords of calls and methods that Python 3.10 to 3.13 added and that a
# package like
# this could reach for. A name of ours that is the same would be reported, too.
LATER_MODULES = {"tomllib", "wsgiref.types", "asyncio.taskgroups", "asyncio.timeouts"}
LATER_NAMES = {
    "aiter",
    "anext",
    "EncodingWarning",
    "ExceptionGroup",
    "BaseExceptionGroup",
    "asyncio.timeout",
    "asyncio.TaskGroup",
    "asyncio.Runner",
    "asyncio.Barrier",
    "itertools.pairwise",
    "itertools.batched",
    "contextlib.aclosing",
    "contextlib.chdir",
    "enum.member",
    "datetime.UTC",
    "enum.StrEnum",
    "enum.ReprEnum",
    "enum.verify",
    "enum.nonmember",
    "hashlib.file_digest",
    "inspect.get_annotations",
    "inspect.markcoroutinefunction",
    "math.cbrt",
    "math.exp2",
    "math.sumprod",
    "math.fma",
    "operator.call",
    "os.EFD_CLOEXEC",
    "os.process_cpu_count",
    "statistics.correlation",
    "statistics.covariance",
    "statistics.linear_regression",
    "statistics.kde",
    "sys.exception",
    "sys.orig_argv",
    "sys.stdlib_module_names",
    "threading.gettrace",
    "threading.setprofile_all_threads",
    "types.EllipsisType",
    "types.NoneType",
    "types.NotImplementedType",
    "types.UnionType",
    "typing.Concatenate",
    "typing.LiteralString",
    "typing.Never",
    "typing.NotRequired",
    "typing.ParamSpec",
    "typing.Required",
    "typing.Self",
    "typing.TypeAlias",
    "typing.TypeGuard",
    "typing.TypeVarTuple",
    "typing.Unpack",
    "typing.assert_never",
    "typing.assert_type",
    "typing.dataclass_transform",
    "typing.override",
    "typing.reveal_type",
    "typing.is_typeddict",
}
LATER_KEYWORDS = {
    "dataclass": {"slots", "kw_only", "match_args", "weakref_slot"},
    "field": {"kw_only"},
    "zip": {"strict"},
    "bisect": {"key"}, "bisect_left": {"key"}, "bisect_right": {"key"}, "insort": {"key"},
}  # fmt: skip
LATER_METHODS = {"bit_count", "add_note", "is_junction", "walk_up", "hardlink_to"}


def later(tree):
    """(line, what) of each use of something later than 3.9. Names are resolved by the imports of
    the file.
    """
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                modules[alias.asname or alias.name] = alias.name
                if alias.name in LATER_MODULES:
                    yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            if node.module in LATER_MODULES:
                yield node.lineno, node.module
            for alias in node.names:
                if "%s.%s" % (node.module, alias.name) in LATER_NAMES:
                    yield node.lineno, alias.name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = modules.get(node.value.id) if isinstance(node.value, ast.Name) else None
            if "%s.%s" % (owner, node.attr) in LATER_NAMES or (
                owner is None and node.attr in LATER_METHODS
            ):
                yield node.lineno, node.attr
        elif (
            isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in LATER_NAMES
        ):
            yield node.lineno, node.id
        elif isinstance(node, ast.Call):
            called = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else getattr(node.func, "id", "")
            )
            for keyword in node.keywords:
                if keyword.arg in LATER_KEYWORDS.get(called, ()):
                    yield node.lineno, "%s(%s=)" % (called, keyword.arg)


def unions(tree):
    """Lines with `X | Y` or a subscripted builtin where it is evaluated: annotations are not, in
    files that import
    annotations from __future__."""
    annotations = set()
    for node in ast.walk(tree):
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            annotations.update(map(id, ast.walk(part)) if part is not None else ())
    types = {"int", "str", "float", "bool", "bytes", "dict", "list", "tuple", "set"}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.BitOr)
            and id(node) not in annotations
        ):
            sides = [node.left, node.right]
            if any(
                isinstance(s, ast.Constant)
                and s.value is None
                or isinstance(s, ast.Name)
                and s.id in types
                for s in sides
            ):
                yield node.lineno


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_python_3_9(path):
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text, str(path), feature_version=(3, 9))
    assert list(later(tree)) == []
    assert list(unions(tree)) == []
    annotated = any(
        getattr(node, "annotation", None) or getattr(node, "returns", None)
        for node in ast.walk(tree)
    )
    assert not annotated or "from __future__ import annotations" in text


@pytest.mark.parametrize(
    "text",
    [
        "import tomllib",
        "from itertools import pairwise",
        "import itertools\nitertools.batched([], 2)",
        "import math as m\nm.cbrt(8)",
        "zip(a, b, strict=True)",
        "@dataclass(slots=True)\nclass A: pass",
        "(3).bit_count()",
        "raise ExceptionGroup('x', [])",
    ],
)
def test_what_is_later_is_found(text):
    assert list(later(ast.parse(text)))


@pytest.mark.parametrize(
    "text", ["match x:\n    case 1: pass", "try: pass\nexcept* ValueError: pass", "type A = int"]
)
def test_later_syntax_is_refused(text):
    with pytest.raises(SyntaxError):
        ast.parse(text, feature_version=(3, 9))


def test_later_unions_are_found():
    assert list(unions(ast.parse("A = int | None")))
