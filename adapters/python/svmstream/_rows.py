"""One row for the library: a dict or a sequence as svs_row; its weight and time.

A dict of numbers costs one packing of its values: names, their C strings and the svs_row are made
once for each tuple of keys.
"""
from __future__ import annotations

import datetime
import math
import struct
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

import numpy as np

from . import errors
from ._library import ffi

MAX_SHAPES = 256  # tuples of keys with a prepared row
MAX_COLUMNS = 500_000  # of all prepared rows together
MAX_TEXTS = 20_000  # names and words kept as C strings
MAX_BYTES = 4 << 20  # of all of them
_NULL = ffi.NULL
_NAN = math.nan
MISSING = ("NAType", "NaTType")  # pandas' missing values


def is_missing(value: Any) -> bool:
    """Is a cell of a table missing: None, NaN, or NA or NaT of pandas?"""
    if value is None or type(value).__name__ in MISSING:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # an array, which has no place in a cell
        return False


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


mask_of: Any = np.ma.getmaskarray  # it has no types


def unmasked(values: Any, what: str) -> Any:
    """values. Raises MissingValueError for a masked array of numpy that masks something: under its
    mask are numbers that nobody measured.
    """
    if isinstance(values, np.ma.MaskedArray) and mask_of(values).any():
        raise errors.MissingValueError(
            "%s is a masked array with masked values: fill them first, for example with "
            "X.astype(float).filled(numpy.nan) and missing=\"mean\", or leave their rows out" % what
        )
    return values


# numpy's times have a __float__, which gives a number in some of their units.
_NO_NUMBERS = (bytes, bytearray, complex, np.datetime64, np.timedelta64)


def number(value: Any, key: Any, nan: bool) -> float:
    """A value of the column `key` as a number. `nan`: NaN is a missing value, not an error."""
    if (
        isinstance(value, _NO_NUMBERS)
        or not hasattr(value, "__float__")
        or (getattr(value, "ndim", 0) != 0)
    ):
        raise _no_value(value, key)
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError) as error:
        raise errors.NotFiniteError("the column %s: %s" % (key, error)) from error
    if number != number and not nan:
        raise errors.NotFiniteError(
            "the column %s is NaN. None is a missing value; to take NaN as one, set "
            "missing=\"mean\" or another "
            "of `svmstream help settings`" % key
        )
    if math.isinf(number):
        raise errors.NotFiniteError("the column %s is infinite" % key)
    return number


def _no_value(value: Any, key: Any) -> errors.WrongTypeError:
    time = hasattr(value, "year") or isinstance(value, np.datetime64)
    return errors.WrongTypeError(
        "the column %s holds a %s; a value is a number, a word (str), a bool or None%s"
        % (key, type(value).__name__, "; give the time of a row as ts=" if time else "")
    )


class Shape:
    """A prepared svs_row for rows with the same keys in the same order."""

    __slots__ = ("count", "row", "x", "buffer", "pack", "words", "worded", "names", "kept")

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
        self.kept: Any = None  # what `words` points to
        if names is not None:
            self.names = ffi.new("char *[]", list(names)), names  # the array and its strings
            self.row.names = self.names[0]


class Rows:
    """Makes svs_row of what a user gives as one row. Its owner locks it; a row is valid until the
    next one.
    """

    def __init__(self, nan: bool) -> None:
        self.nan = nan  # NaN is a missing value, not an error
        self.shapes: Dict[Any, Shape] = {}
        self._columns = 0
        self._texts: Dict[Any, Any] = {}
        self._bytes = 0

    def text(self, text: str, what: str) -> Any:
        """The C string of a name or word. It lives as long as the caller keeps it."""
        found = self._texts.get(text)
        if found is None:
            data = _encoded(text, what)
            found = ffi.new("char[]", data)
            if len(self._texts) >= MAX_TEXTS or self._bytes > MAX_BYTES:
                self._texts.clear()
                self._bytes = 0
            self._bytes += len(data)
            self._texts[text] = found
        return found

    def _prepare(self, key: Any, names: Optional[Sequence[Any]], count: int) -> Shape:
        if len(self.shapes) >= MAX_SHAPES or self._columns > MAX_COLUMNS:
            self.shapes.clear()
            self._columns = 0
        self._columns += count
        shape = self.shapes[key] = Shape(names, count)
        return shape

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
                total = sum(values, 0.0)  # to which no time can be added
            except (struct.error, TypeError, OverflowError):
                pass
            else:
                if total == total or self.nan:
                    return shape
        given = list(x.values())
        if len(given) != len(keys):
            raise RuntimeError("the dict changed while it was read: another thread uses it")
        self._each(shape, keys, given)
        return shape

    def _named(self, keys: Tuple[Any, ...]) -> Shape:
        names = [self.text(column_name(key), "the column") for key in keys]
        return self._prepare(keys, names, len(keys))

    def _each(self, shape: Shape, keys: Sequence[Any], values: Any) -> None:
        """Fills a row value by value: words, missing values, other kinds of numbers, and what is
        wrong.
        """
        x, row = shape.x, shape.row
        if shape.words is None:
            shape.words = ffi.new("char *[]", max(1, shape.count))
        words, kept, holds = shape.words, [], False
        row.words = _NULL
        for i, value in enumerate(values):
            words[i] = _NULL
            kind = type(value)
            if kind is float or kind is int:
                x[i] = number(value, keys[i], self.nan)
            elif value is None or kind.__name__ in MISSING:
                x[i], holds = _NAN, True
            elif isinstance(value, str):
                word = self.text(value, "a word of the column %s:" % keys[i])
                kept.append(word)
                words[i] = word
                x[i] = 0.0
            else:
                x[i] = number(value, keys[i], self.nan)
        if kept:
            row.words = words
        shape.kept, shape.worded = kept, bool(kept) or holds

    def _other(self, x: Any) -> Shape:
        if isinstance(x, Mapping):
            return self.row(dict(x))
        if hasattr(x, "to_dict") and getattr(x, "ndim", 1) == 1:  # pandas.Series
            return self.row({k: None if is_missing(v) else v for k, v in x.to_dict().items()})
        if isinstance(x, (str, bytes, set, frozenset)) or not hasattr(x, "__len__"):
            raise errors.WrongTypeError(
                "a row is a dict of columns or a sequence of numbers, not %s" % type(x).__name__
            )
        if getattr(x, "ndim", 1) != 1:
            raise errors.WrongDimensionError(
                "one row is a dict or has 1 dimension, not %d: give a matrix to learn_many, "
                "partial_fit or predict" % x.ndim
            )
        unmasked(x, "the row")
        count = len(x)
        shape = self.shapes.get(count)
        if shape is None:
            shape = self._prepare(count, None, count)
        for i, value in enumerate(x):
            if isinstance(value, str):
                raise errors.WrongTypeError(
                    "value %d of the row is the word %r; words need names: give a dict" % (i, value)
                )
            shape.x[i] = _NAN if value is None and self.nan else number(value, i, self.nan)
        return shape


def weights(w: Any, n: int) -> Any:
    """Sample weights as float64 (n), or None. 0: the row is passed over. Raises BadWeightError."""
    if w is None:
        return None
    if hasattr(w, "to_numpy"):
        w = w.to_numpy()
    unmasked(w, "sample_weight")
    try:
        a = np.asarray(w)
        if a.dtype.kind not in "fiubO":
            raise TypeError("%s is no kind of number" % a.dtype)
        a = np.ascontiguousarray(a, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
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
    if type(ts).__name__ in MISSING:
        raise errors.NotFiniteError("ts is %s: leave it out if the time is not known" % ts)
    if isinstance(ts, np.datetime64):
        ts = float((ts - np.datetime64(0, "s")) / np.timedelta64(1, "s"))
    elif hasattr(ts, "timestamp"):
        if getattr(ts, "tzinfo", None) is None:
            ts = ts.replace(tzinfo=datetime.timezone.utc)
        ts = ts.timestamp()
    try:
        if isinstance(ts, (str, bytes, bytearray)):
            raise TypeError("a text")
        number = float(ts)
    except OverflowError as error:
        raise errors.TooLargeError("ts: %s" % error) from error
    except (TypeError, ValueError) as error:
        raise errors.WrongTypeError(
            "ts is a %s; a time is seconds since 1970 or a datetime%s"
            % (
                type(ts).__name__,
                ", as datetime.fromisoformat() makes of text" if isinstance(ts, str) else "",
            )
        ) from error
    if not math.isfinite(number):
        raise errors.NotFiniteError("ts is %s; a time is finite, None is no time" % ts)
    return number


def times(ts: Any, n: int) -> Any:
    """Times of rows as float64 (n) of seconds since 1970, or None."""
    if ts is None:
        return None
    if hasattr(ts, "to_numpy"):
        ts = ts.to_numpy()
    unmasked(ts, "ts")
    try:
        a = np.asarray(ts)
    except ValueError as error:
        raise errors.WrongTypeError("ts holds sequences: %s" % error) from error
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
