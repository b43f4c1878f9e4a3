"""The library: `lib` and `ffi`, errors as exceptions, values and settings to C and back.

Views that are passed to the library are returned with the result, for the caller to keep alive."""
from __future__ import annotations

import operator
from typing import Any, List, Mapping, Optional, Tuple, Union

from . import errors
from ._native import ffi, lib

__all__ = [
    "Error",
    "Value",
    "c_text",
    "check",
    "failure",
    "ffi",
    "fill",
    "from_value",
    "lib",
    "setting_text",
    "settings",
    "value",
]

Value = Union[None, bool, int, float, str]
"""A label or an id."""

_content = operator.attrgetter("as")  # a member of C whose name is a word of Python
_NONE, _INT, _REAL, _STR = lib.SVS_NONE, lib.SVS_INT, lib.SVS_REAL, lib.SVS_STR
_NAMES = [ffi.string(lib.svs_code_name(code)).decode() for code in range(lib.SVS_CODE_COUNT)]
INT_MIN, INT_MAX = -(2**63), 2**63 - 1


def Error() -> Any:
    """A fresh report of a call: `svs_error *`."""
    return ffi.new("svs_error *")


def failure(err: Any, code: Optional[int] = None) -> errors.SvmstreamError:
    """The exception for a report that a failing call filled in; `code`: what the call returned."""
    number = err.code if code is None else code
    name = _NAMES[number] if 0 <= number < len(_NAMES) else "invalid"
    text = ffi.string(err.text).decode("utf-8", "replace")
    return errors.by_code(name, text or ffi.string(lib.svs_code_text(number)).decode())


def check(code: int, err: Any) -> None:
    """Raises what a call that returns a code reported, if it failed."""
    if code:
        raise failure(err, code)


def _plain(x: Any) -> Any:
    """A numpy scalar as Python's own."""
    item = getattr(x, "item", None)
    return item() if item is not None and getattr(x, "ndim", 0) == 0 else x


def fill(target: Any, x: Any, what: str = "the label") -> Any:
    """Writes a label or an id into `target`, a `svs_value` of C; returns what must outlive it.

    None, bool (as 0 or 1), int, float, str and numpy's scalars of these. `what` names it in errors.
    """
    kind = type(x)
    if kind is int:
        if not INT_MIN <= x <= INT_MAX:
            raise errors.TooLargeError("%s %d does not fit 64 bits" % (what, x))
        target.kind, target.length = _INT, 0
        _content(target).i = x
    elif kind is str:
        text = x.encode("utf-8", "surrogatepass")
        buffer = ffi.from_buffer("char[]", text)
        target.kind, target.length = _STR, len(text)
        _content(target).s = buffer
        return buffer
    elif kind is float:
        target.kind, target.length = _REAL, 0
        _content(target).r = x
    elif x is None:
        target.kind, target.length = _NONE, 0
    elif isinstance(
        x, (bool, int, float, str)
    ):  # kinds of these: an enum, numpy.float64, numpy.str_
        base = next(t for t in (int, float, str) if isinstance(x, t))
        return fill(target, str.__str__(x) if base is str else base(x), what)
    else:
        plain = _plain(x)
        if not isinstance(plain, (bool, int, float, str)):
            raise errors.WrongTypeError(
                "%s is a %s; it must be a number or a string" % (what, type(x).__name__)
            )
        return fill(target, plain, what)
    return None


def fill_id(target: Any, id: Any) -> Any:
    """As fill, for an id: an int, a str or None. BadIdError names what was given instead."""
    if type(id) not in (int, str):
        plain = _plain(id)
        if isinstance(plain, float):
            raise errors.BadIdError(
                "the id is the float %r; an id is an integer or a string%s"
                % (plain, ": give int(id)" if plain.is_integer() else "")
            )
    try:
        return fill(target, id, "the id")
    except errors.InputError as error:
        raise errors.BadIdError(str(error)) from error


def value(x: Any, what: str = "the label") -> Tuple[Any, Any]:
    """A new `svs_value *` for `x`, and what must outlive it."""
    cell = ffi.new("svs_value *")
    return cell, fill(cell, x, what)


def from_value(v: Any) -> Value:
    """A `svs_value` of C as None, int, float or str."""
    kind = v.kind
    if kind == _INT:
        return int(_content(v).i)
    if kind == _STR:
        return bytes(ffi.buffer(_content(v).s, v.length)).decode("utf-8", "replace")
    return float(_content(v).r) if kind == _REAL else None


def setting_text(key: str, given: Any) -> str:
    """A setting's value in the form of `svmstream help settings`.

    True is "yes", None "none", 0.5 "0.5"; a list is its items with commas between them, a dict
    CLASS=WEIGHT pairs.
    """
    if given is None:
        return "none"
    if isinstance(given, str):
        return given
    given = _plain(given)
    if isinstance(given, bool):
        return "yes" if given else "no"
    if isinstance(given, (int, float)):
        return "%d" % given if isinstance(given, int) or given.is_integer() else repr(given)
    if isinstance(given, Mapping):
        if any(isinstance(v, (list, tuple, set, frozenset, Mapping)) for v in given.values()):
            raise errors.SettingError("setting %s: a list or dict within a dict" % key)
        return ",".join(
            "%s=%s" % (setting_text(key, k), setting_text(key, v)) for k, v in given.items()
        )
    if isinstance(given, (list, tuple, set, frozenset)):
        for item in given:
            if isinstance(item, (list, tuple, set, frozenset, Mapping)):
                raise errors.SettingError("setting %s: a list within a list" % key)
        return ",".join(setting_text(key, item) for item in given)
    raise errors.SettingError(
        "setting %s: a %s is no value of a setting; give a number, a string, True, False or a list"
        % (key, type(given).__name__)
    )


def c_text(text: str, what: str) -> Any:
    """A C string. Raises WrongTypeError where it would end at a NUL, or is not valid Unicode."""
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise errors.WrongTypeError("%s %a is not valid Unicode" % (what, text)) from error
    if b"\0" in data:
        raise errors.WrongTypeError("%s %a contains a NUL" % (what, text))
    return ffi.new("char[]", data)


def settings(given: Mapping[str, Any]) -> Tuple[Any, int, List[Any]]:
    """`svs_setting[]` for a dict of settings, its length, and what must outlive it."""
    pairs = ffi.new("svs_setting[]", max(1, len(given)))
    keep: List[Any] = []
    for pair, (key, item) in zip(pairs, given.items()):
        if not isinstance(key, str):
            raise errors.SettingError("a setting's name is a string, not %s" % type(key).__name__)
        texts = [part.encode("utf-8", "surrogatepass") for part in (key, setting_text(key, item))]
        if any(b"\0" in part for part in texts):
            raise errors.SettingError("setting %s contains a NUL" % key.split("\0")[0])
        pair.key, pair.value = buffers = [ffi.new("char[]", part) for part in texts]
        keep.extend(buffers)
    return pairs, len(given), keep
