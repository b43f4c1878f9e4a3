"""Many rows for the library: an array or a DataFrame as svs_block.

A C-contiguous array of float64 or float32 is passed by its pointer; others are converted once.
"""
from __future__ import annotations

import math
import warnings
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import numpy as np

from . import errors
from ._library import ffi
from ._rows import column_name, is_missing, mask_of, number, unmasked
from ._warning import warn

_NAN = math.nan


class Matrix:
    """Rows for svs_block: `x` (n, d) of float64 or float32 with any stride from row to row.
    `names`: columns, or None. `words`: pairs of a column's number and its n words, None where x
    counts.
    """

    __slots__ = ("x", "n", "d", "names", "words")

    def __init__(self, x: Any, n: int, d: int, names: Optional[List[str]]) -> None:
        self.x, self.n, self.d, self.names = x, n, d, names
        self.words: List[Tuple[int, List[Optional[str]]]] = []

    def fill(self, block: Any, text: Callable[[str, str], Any]) -> Any:
        """Sets values, words and sizes of a svs_block; returns what must outlive it. text: the C
        string of a word.
        """
        x = self.x
        address = x.__array_interface__["data"][0]
        block.n, block.d, block.stride = (
            self.n,
            self.d,
            x.strides[0] // x.itemsize if self.n > 1 else self.d,
        )
        if x.dtype == np.float64:
            block.x = ffi.cast("double *", address)
        else:
            block.x32 = ffi.cast("float *", address)
        if not self.words:
            return None
        texts: Dict[str, Any] = {}
        block.words = words = ffi.new("char *[]", self.n * self.d)
        for j, column in self.words:
            for i, word in enumerate(column):
                if word is not None:
                    if word not in texts:
                        texts[word] = text(word, "a word:")
                    words[i * self.d + j] = texts[word]
        return words, texts


def matrix(X: Any, nan: bool) -> Matrix:
    """X as rows: an array (n, d), a nested list or a DataFrame. `nan`: NaN in an array is a missing
    value.

    Raises WrongDimensionError (not 2-D, ragged, no rows, no columns), WrongTypeError (words without
    names, sparse, complex), NotFiniteError.
    """
    if isinstance(X, np.ndarray):
        return _array(X, nan)
    if hasattr(X, "nnz") and hasattr(X, "toarray"):
        raise errors.WrongTypeError(
            "a sparse matrix was passed, but dense data is required: give X.toarray()"
        )
    if hasattr(X, "columns") and hasattr(X, "dtypes") and hasattr(X, "to_numpy"):
        return _frame(X)
    if isinstance(X, Mapping) or (isinstance(X, (list, tuple)) and X and isinstance(X[0], Mapping)):
        raise errors.WrongTypeError(
            "many rows are an array (n, d) or a DataFrame; give dicts one by one to learn_one"
        )
    if hasattr(X, "__next__"):
        raise errors.WrongTypeError(
            "X is a %s; many rows are an array (n, d) or a DataFrame; give rows one by one to "
            "learn_one" % type(X).__name__
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy before 1.24 only warns of ragged rows
        try:
            array = np.asarray(X)
        except (ValueError, Warning) as error:
            raise errors.WrongDimensionError(
                "the rows of X do not have the same length: %s" % error
            ) from error
    if array.ndim == 0 and not isinstance(X, (int, float, np.generic)):
        raise errors.WrongTypeError(
            "X is a %s; rows are an array (n, d), a nested list or a DataFrame" % type(X).__name__
        )
    return _array(array, nan)


def warn_of_labels(X: Any, y: Any) -> None:
    """Warns if y is a column of the DataFrame X: it has its name and its values."""
    name = getattr(y, "name", None)
    if not isinstance(name, str) or name not in list(getattr(X, "columns", ())):
        return
    if np.array_equal(np.asarray(X[name]), np.asarray(y)):
        warn(
            "X holds the labels themselves, in its column %r: the model learns to copy them; "
            "leave it out: X.drop(columns=%r)" % (name, name)
        )


def _array(x: Any, nan: bool) -> Matrix:
    if x.ndim != 2:
        ragged = (
            x.dtype == object
            and x.ndim == 1
            and x.size
            and hasattr(x[0], "__len__")
            and not isinstance(x[0], str)
        )
        raise errors.WrongDimensionError(
            "the rows of X do not have the same length"
            if ragged
            else "Expected 2D array, got %dD array instead. Reshape your data: "
            "X.reshape(1, -1) if it is one row, "
            "X.reshape(-1, 1) if it is one column" % x.ndim
        )
    if isinstance(x, np.ma.MaskedArray):
        masked = mask_of(x)
        if nan and masked.any():  # as NaN: missing
            x = _numbers(np.where(masked, 0, x.data))
            x = np.where(masked, np.array(np.nan, x.dtype), x)
        x = np.asarray(unmasked(x, "X"))
    n, d = x.shape
    if n == 0:
        raise errors.MissingXError(
            "Found array with 0 sample(s) (shape=(0, %d)) while a minimum of 1 is required." % d
        )
    if d == 0:
        raise errors.MissingXError(
            "Found array with 0 feature(s) (shape=(%d, 0)) while a minimum of 1 is required." % n
        )
    x = _numbers(x)
    check_finite(x, nan)
    return Matrix(x, n, d, None)


def _numbers(x: Any) -> Any:
    """The array as float64 or float32, native and with the values of a row next to each other;
    itself if it is so already.
    """
    kind = x.dtype.kind
    if kind == "c":
        raise errors.WrongTypeError("Complex data not supported: X has dtype %s" % x.dtype)
    if kind == "O":
        word = next((v for v in x.ravel().tolist() if isinstance(v, (str, bytes))), None)
        if word is not None:
            raise errors.WrongTypeError(
                "X holds the word %r; words need names of columns: give a DataFrame, or dicts to "
                "learn_one" % (word,)
            )
        values = [_NAN if is_missing(v) else v for v in x.ravel().tolist()]
        try:
            x = np.array(values, dtype=np.float64).reshape(x.shape)
        except OverflowError as error:
            raise errors.NotFiniteError("X: %s" % error) from error
        except (TypeError, ValueError) as error:
            raise errors.WrongTypeError("X: %s" % error) from error
    elif kind not in "fiub":
        raise errors.WrongTypeError(
            "X has dtype %s, which is not one of numbers; for words give a DataFrame, or dicts to "
            "learn_one" % x.dtype
        )
    if x.dtype not in (np.float64, np.float32) or not x.dtype.isnative:
        x = x.astype(np.float64)
    size = x.itemsize
    if (
        x.strides[1] == size
        and x.strides[0] >= size * x.shape[1]
        and x.strides[0] % size == 0
        and x.flags.aligned
    ):
        return x
    return np.ascontiguousarray(x)


def check_finite(x: Any, nan: bool) -> None:
    """Raises NotFiniteError with the place of the first value that is not finite; `nan`: NaN is
    accepted.
    """
    with np.errstate(all="ignore"):
        if np.isfinite(x.sum()):  # one pass; a sum that overflows is looked at again
            return
        wrong = np.isinf(x) if nan else ~np.isfinite(x)
    if wrong.any():
        row, col = (int(i[0]) for i in np.nonzero(wrong))
        if np.isnan(x[row, col]):
            raise errors.NotFiniteError(
                "Input X contains NaN: row %d, column %d. To take NaN as a missing "
                "value, set missing=\"mean\" or another "
                "of `svmstream help settings`" % (row, col)
            )
        raise errors.NotFiniteError(
            "Input X contains infinity or a value too large for dtype('%s'): row %d, column %d"
            % (x.dtype, row, col)
        )


def _frame(X: Any) -> Matrix:
    """A DataFrame, of any library that has columns, dtypes and to_numpy. NaN, None and NA in it are
    missing values; columns of strings or categories are words.
    """
    columns = list(X.columns)
    n, d = len(X), len(columns)
    if n == 0 or d == 0:
        return _array(np.empty((n, d)), True)
    unnamed = all(isinstance(c, (int, np.integer)) for c in columns)
    names = None if unnamed else [column_name(c) for c in columns]
    if names is not None and len(set(names)) < d:
        raise errors.DuplicateKeyError(
            "the DataFrame has a column twice: %s" % next(c for c in names if names.count(c) > 1)
        )
    dtypes = list(X.dtypes)
    if all(isinstance(t, np.dtype) and t.kind in "fiu" for t in dtypes):
        x = _numbers(X.to_numpy())
        result = Matrix(x, n, d, names)
    else:
        result = _mixed(X, columns, names, n)
    check_finite(result.x, True)
    return result


def _mixed(X: Any, columns: List[Any], names: Optional[List[str]], n: int) -> Matrix:
    """A DataFrame with columns of several kinds, converted column by column."""
    parts: List[Any] = []
    words = False
    for c in columns:
        a = np.asarray(X[c])
        if a.dtype.kind in "fiub":
            parts.append(a.astype(np.float64))
            continue
        if a.dtype.kind not in "OU":
            raise errors.WrongTypeError(
                "the column %s has dtype %s, which is neither numbers nor words%s"
                % (c, a.dtype, "; give times as ts=" if a.dtype.kind in "mM" else "")
            )
        items = [None if is_missing(v) else v for v in a.tolist()]
        if any(isinstance(v, str) for v in items):
            words = True
            parts.append(items)
        else:
            parts.append(np.array([_number_of(v, c) for v in items]))
    x = np.empty((n, len(columns)))
    for j, part in enumerate(parts):
        x[:, j] = (
            part if isinstance(part, np.ndarray) else [_number_of(v, columns[j]) for v in part]
        )
    if not words:
        return Matrix(x, n, len(columns), names)
    result = Matrix(x, n, len(columns), names or [column_name(c) for c in columns])
    result.words = [
        (j, [v if isinstance(v, str) else None for v in part])
        for j, part in enumerate(parts)
        if not isinstance(part, np.ndarray)
    ]
    return result


def _number_of(value: Any, name: Any) -> float:
    """What stands in x for a cell of a column of objects."""
    if value is None:
        return _NAN
    return 0.0 if isinstance(value, str) else number(value, name, True)
