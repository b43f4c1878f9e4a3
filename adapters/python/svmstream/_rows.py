"""One row for the library: a dict or a sequence as svs_row; its weight and time.

A dict of numbers costs one packing of its values: names, their C strings and the svs_row are made
once for each tuple of keys.
"""
from __future__ import annotations

import math
import struct
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from . import errors
from ._library import ffi

MAX_SHAPES = 256  # tuples of keys with a prepared row
MAX_TEXTS = 20_000  # names and words kept as C strings
_NULL = ffi.NULL
_NAN = math.nan
MISSING = ("NAType", "NaTType")  # pandas' missing values


def _encoded(text: str, what: str) -> bytes:
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise errors.BadColumnError("%s %a is not valid Unicode" % (what, text)) from error
    if b"\0" in data:
        raise errors.BadColumnError("%s %a contains a NUL" % (what, text))
    return data


def column_name(key: Any) -> str:
    """A key of a dict or a column of a DataFrame as a name: a string, or an integer in digits."""
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        return str(int(key))
    raise errors.BadColumnError(
        "the column %r is a %s; columns are named by strings" % (key, type(key).__name__)
    )


class Shape:
    """A prepared svs_row for rows with the same keys in the same order."""

    __slots__ = ("count", "row", "x", "buffer", "pack", "words", "worded", "names")

    def __init__(self, names: Optional[Sequence[Any]], count: int) -> None:
        self.count = count
        self.row = ffi.new("svs_row *")
        self.x = ffi.new("double[]", max(1, count))
        self.buffer = ffi.buffer(self.x, 8 * count) if count else bytearray()
        self.pack = struct.Struct("%dd" % count).pack_into
        self.words: Any = None
        self.worded = False  # the last row held words or missing values: no need to try without
        self.row.x, self.row.d, self.row.weight = self.x, count, 1.0
        self.names: Any = None
        if names is not None:
            self.names = ffi.new("char *[]", list(names))
            self.row.names = self.names


class Rows:
    """Makes svs_row of what a user gives as one row. Its owner locks it; a row is valid until the
    next one.
    """

    def __init__(self, nan: bool) -> None:
        self.nan = nan  # NaN is a missing value, not an error
        self.shapes: Dict[Any, Shape] = {}
        self._texts: Dict[Any, Any] = {}

    def text(self, text: str, what: str) -> Any:
        """The C string of a name or word."""
        found = self._texts.get(text)
        if found is None:
            if len(self._texts) >= MAX_TEXTS:
                self._texts.clear()
                self.shapes.clear()
            found = self._texts[text] = ffi.new("char[]", _encoded(text, what))
        return found

    def row(self, x: Any) -> Shape:
        """The prepared row of a dict (or mapping, pandas.Series), or of a sequence of numbers
        without names.
        """
        if type(x) is not dict:
            return self._other(x)
        keys = tuple(x)
        shape = self.shapes.get(keys)
        if shape is None:
            shape = self._named(keys)
        if not shape.worded:
            values = x.values()
            try:
                shape.pack(shape.buffer, 0, *values)
                total = sum(values)
            except (struct.error, TypeError, OverflowError):
                pass
            else:
                if total == total or self.nan:
                    return shape
        self._each(shape, keys, x.values())
        return shape

    def _named(self, keys: Tuple[Any, ...]) -> Shape:
        if len(self.shapes) >= MAX_SHAPES:
            self.shapes.clear()
        shape = Shape([self.text(column_name(key), "the column") for key in keys], len(keys))
        self.shapes[keys] = shape
        return shape

    def _each(self, shape: Shape, keys: Sequence[Any], values: Any) -> None:
        """Fills a row value by value: words, missing values, other kinds of numbers, and what is
        wrong.
        """
        x, row = shape.x, shape.row
        if shape.words is None:
            shape.words = ffi.new("char *[]", max(1, shape.count))
        words, worded, holds = shape.words, False, False
        row.words = _NULL
        for i, value in enumerate(values):
            words[i] = _NULL
            kind = type(value)
            if kind is float or kind is int:
                x[i] = self._number(value, keys[i])
            elif value is None or kind.__name__ in MISSING:
                x[i], holds = _NAN, True
            elif isinstance(value, str):
                words[i], worded = self.text(value, "a word of the column %s:" % keys[i]), True
                x[i] = 0.0
            else:
                x[i] = self._number(value, keys[i])
        if worded:
            row.words = words
        shape.worded = worded or holds

    def _number(self, value: Any, key: Any) -> float:
        if (
            isinstance(value, (bytes, bytearray, complex))
            or not hasattr(value, "__float__")
            or (getattr(value, "ndim", 0) != 0)
        ):
            hint = "; give the time of a row as ts=" if hasattr(value, "year") else ""
            raise errors.WrongTypeError(
                "the column %s holds a %s; a value is a number, a word (str), a bool or None%s"
                % (key, type(value).__name__, hint)
            )
        try:
            number = float(value)
        except (OverflowError, TypeError, ValueError) as error:
            raise errors.NotFiniteError("the column %s: %s" % (key, error)) from error
        if number != number and not self.nan:
            raise errors.NotFiniteError(
                "the column %s is NaN. None is a missing value; to take NaN as one, set "
                "missing=\"mean\" or another "
                "of `svmstream help settings`" % key
            )
        if math.isinf(number):
            raise errors.NotFiniteError("the column %s is infinite" % key)
        return number

    def _other(self, x: Any) -> Shape:
        if isinstance(x, Mapping):
            return self.row(dict(x))
        if hasattr(x, "to_dict") and getattr(x, "ndim", 1) == 1:  # pandas.Series
            return self.row({k: None if v != v else v for k, v in x.to_dict().items()})
        if isinstance(x, (str, bytes)) or not hasattr(x, "__len__"):
            raise errors.WrongTypeError(
                "a row is a dict of columns or a sequence of numbers, not a %s" % type(x).__name__
            )
        if getattr(x, "ndim", 1) != 1:
            raise errors.WrongDimensionError(
                "one row is a dict or has 1 dimension, not %d: give a matrix to learn_many, "
                "partial_fit or predict" % x.ndim
            )
        count = len(x)
        shape = self.shapes.get(count)
        if shape is None:
            if len(self.shapes) >= MAX_SHAPES:
                self.shapes.clear()
            shape = self.shapes[count] = Shape(None, count)
        for i, value in enumerate(x):
            if isinstance(value, str):
                raise errors.WrongTypeError(
                    "value %d of the row is the word %r; words need names: give a dict" % (i, value)
                )
            shape.x[i] = _NAN if value is None and self.nan else self._number(value, i)
        return shape


def weights(w: Any, n: int) -> Any:
    """Sample weights as float64 (n), or None. 0: the row is passed over. Raises BadWeightError."""
    if w is None:
        return None
    if hasattr(w, "to_numpy"):
        w = w.to_numpy()
    try:
        a = np.ascontiguousarray(w, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise errors.BadWeightError("sample_weight: %s" % error) from error
    if a.ndim == 0:
        a = np.full(n, float(a))
    if a.ndim != 1:
        raise errors.BadWeightError(
            "Sample weights must be 1D array or scalar, not of shape %s" % (a.shape,)
        )
    if len(a) != n:
        raise errors.BadWeightError("sample_weight.shape == (%d,), expected (%d,)!" % (len(a), n))
    if not np.isfinite(a).all() or (a < 0).any():
        raise errors.BadWeightError(
            "a weight is negative, NaN or infinite: row %d"
            % int(np.nonzero(~np.isfinite(a) | (a < 0))[0][0])
        )
    return a


def seconds(ts: Any) -> float:
    """A time as seconds since 1970: a number, a datetime (without a zone: UTC), numpy.datetime64,
    pandas.Timestamp.
    """
    if isinstance(ts, np.datetime64):
        return float((ts - np.datetime64(0, "s")) / np.timedelta64(1, "s"))
    if hasattr(ts, "timestamp"):
        if getattr(ts, "tzinfo", None) is None:
            import datetime

            ts = ts.replace(tzinfo=datetime.timezone.utc)
        return float(ts.timestamp())
    try:
        number = float(ts)
    except (TypeError, ValueError) as error:
        raise errors.WrongTypeError(
            "ts is a %s; a time is seconds since 1970 or a datetime" % type(ts).__name__
        ) from error
    if not math.isfinite(number):
        raise errors.NotFiniteError("ts is not finite")
    return number


def times(ts: Any, n: int) -> Any:
    """Times of rows as float64 (n) of seconds since 1970, or None."""
    if ts is None:
        return None
    if hasattr(ts, "to_numpy"):
        ts = ts.to_numpy()
    a = np.asarray(ts)
    if a.dtype.kind == "M":
        a = (a - np.datetime64(0, "s")) / np.timedelta64(1, "s")
    elif a.dtype.kind == "O":
        a = np.array([seconds(t) for t in a.tolist()])
    if a.dtype.kind not in "fiu" or a.shape != (n,):
        raise errors.WrongTypeError(
            "ts is %s of shape %s; expected %d times in seconds since 1970 or as datetime64"
            % (a.dtype, a.shape, n)
        )
    a = np.ascontiguousarray(a, dtype=np.float64)
    if not np.isfinite(a).all():
        raise errors.NotFiniteError("ts holds a time that is not finite")
    return a
