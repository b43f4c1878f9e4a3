"""Labels: what a user calls a class, and the integer or string that it is in the library.

The library knows classes as integers and strings: True, 1.0 and numpy.int64(1) are its class 1. A
prediction is the object by which its class was first named."""
from __future__ import annotations

import math
from typing import Any, Dict, Iterable, List, Tuple

import numpy as np

from . import errors
from ._library import ffi, fill, from_value, lib
from ._rows import MISSING, unmasked
from ._warning import warn

NONE = ffi.new("svs_value *")[0]  # no label
# Labels remembered: above the limit of classes, so only a stream without classifier gets there.
MAX_NAMED = 8192


def plain(y: Any) -> Any:
    """The int or str that a label is in the library. Raises WrongTypeError, BadLabelError."""
    if isinstance(y, str):
        return str.__str__(y)
    if y is None or type(y).__name__ in MISSING:
        raise errors.BadLabelError(
            "a label is missing (%r). A class is an integer or a string; None is no label" % y
        )
    if isinstance(y, (int, np.integer, np.bool_)):
        return int(y)
    if isinstance(y, (float, np.floating)):
        if math.isnan(y):
            raise errors.BadLabelError(
                "Input y contains NaN. A class is an integer or a string; None is no label"
            )
        if math.isinf(y):
            raise errors.BadLabelError(
                "Input y contains infinity or a value too large for dtype('float64'). "
                "A class is an integer or a string"
            )
        if not float(y).is_integer():
            raise errors.BadLabelError(
                "Unknown label type: continuous (%r). A class is an integer or a string; "
                "to predict numbers, set task=\"regress\"" % float(y)
            )
        return int(y)
    raise errors.WrongTypeError(
        "Unknown label type: %s. A class is an integer, a bool or a string" % type(y).__name__
    )


class Labels:
    """The labels of one learner. Its owner locks it."""

    def __init__(self) -> None:
        # label -> svs_value; labels that are equal (1, True, 1.0) share one
        self.cells: Dict[Any, Any] = {}
        self._texts: Dict[Any, Any] = {}  # label -> what its svs_value points to
        self._own: Dict[Any, Any] = {}  # int or str of the library -> label as it was first given
        self.of_objects = False  # some arrived in an array of objects, so predictions are one too

    def make(self, y: Any) -> Tuple[Any, Any]:
        """A new svs_value for a label, and what must outlive it."""
        cell = ffi.new("svs_value *")
        return cell[0], fill(cell, plain(y))

    def remember(self, y: Any, cell: Any, text: Any) -> None:
        """Keeps a label that was learned."""
        if len(self.cells) >= MAX_NAMED:
            self.cells.clear()
            self._texts.clear()
        self.cells[y] = cell
        self._texts[y] = text
        if len(self._own) < MAX_NAMED:
            self._own.setdefault(plain(y), y)

    def own(self, value: Any) -> Any:
        """The user's label for a class of the library."""
        return self._own.get(value, value)

    def classes(self, handle: Any) -> List[Any]:
        """The classes of a stream in its order, as the user named them."""
        return [
            self.own(from_value(lib.svs_stream_class(handle, i)))
            for i in range(lib.svs_stream_class_count(handle))
        ]

    def named(self) -> List[Any]:
        """All labels as they were first given, for an archive."""
        return list(self._own.values())

    def restore(self, labels: Iterable[Any]) -> None:
        """Takes the labels of an archive."""
        for label in labels:
            self._own.setdefault(plain(label), label)

    # ---- arrays of labels

    def block(self, y: Any, n: int) -> "LabelBlock":
        """The labels of a block as indexes into a table; new ones are remembered by
        LabelBlock.commit.
        """
        dtype, items = _items(y, n)
        if isinstance(items, np.ndarray):
            index, names = _numbered(items)
            return LabelBlock(self, index, names, dtype)
        try:
            names = [item for item in dict.fromkeys(items) if item is not None]
            place: Dict[Any, int] = {None: -1, **{name: i for i, name in enumerate(names)}}
            index = np.array([place[item] for item in items], dtype=np.int32)
        except TypeError as error:
            raise errors.WrongTypeError(
                "Unknown label type: y holds items that are not hashable"
            ) from error
        return LabelBlock(self, index, names, dtype)


class LabelBlock:
    """The labels of a block: `index` (n, int32; -1 = no label) into `names`; for C `table`,
    `count`.
    """

    def __init__(self, labels: Labels, index: Any, names: List[Any], dtype: Any) -> None:
        self.index, self.names = index, names
        self._labels, self._dtype, self._texts = labels, dtype, []
        self.table = ffi.new("svs_value[]", max(1, len(names)))
        for cell, name in zip(self.table, names):
            self._texts.append(fill(cell, plain(name)))
        self.count = len(names)

    def own(self) -> List[Any]:
        """The labels in the type of the array that held them."""
        kind = None if self._dtype is None or self._dtype.kind not in "iubf" else self._dtype.type
        return self.names if kind is None else [kind(name) for name in self.names]

    def commit(self) -> None:
        """Remembers the labels: the block was learned."""
        labels = self._labels
        for name in self.own():
            if name not in labels.cells:
                labels.remember(name, *labels.make(name))
        if self._dtype is not None and self._dtype.kind == "O":
            labels.of_objects = True


def _array(y: Any) -> Any:
    try:
        return np.asarray(y)
    except ValueError as error:
        raise errors.WrongTypeError("y holds sequences: %s" % error) from error


def column(y: Any, n: int) -> Any:
    """y as a sequence of n items: a 2-D column is flattened with a warning. Raises on another
    length or shape.
    """
    if isinstance(y, str):
        raise errors.WrongTypeError(
            "y is the string %r; it holds the labels themselves: n of them, such as table[%r]"
            % (y, y)
        )
    if hasattr(y, "to_numpy"):
        y = y.to_numpy()
    unmasked(y, "y")
    if not isinstance(y, (list, tuple)) or (y and isinstance(y[0], (list, tuple, np.ndarray))):
        y = _array(y)
        if y.ndim == 2 and y.shape[1] == 1:
            _warn_of_column()
            y = y.ravel()
        if y.ndim != 1:
            raise errors.WrongDimensionError(
                "y should be a 1d array, got an array of shape %s instead" % (y.shape,)
            )
    if len(y) != n:
        raise errors.WrongDimensionError(
            "X has %d rows and y has %d labels: Found input variables with "
            "inconsistent numbers of samples" % (n, len(y))
        )
    return y


def _numbered(y: Any) -> Tuple[Any, List[Any]]:
    """Integers or bools as indexes (int32) into their distinct values, in order of appearance."""
    n = len(y)
    low, high = (int(y.min()), int(y.max())) if n else (0, 0)
    if high - low > 4 * n or high >= 2**63:
        _, first, index = np.unique(y, return_index=True, return_inverse=True)
    else:  # few integers between: no sorting
        index = y.astype(np.int64) - low
        first = np.full(high - low + 1, n)
        first[index[::-1]] = np.arange(n - 1, -1, -1)
    order = np.argsort(first)
    order = order[: np.count_nonzero(first < n)]
    rank = np.empty(len(first), dtype=np.int32)
    rank[order] = np.arange(len(order))
    return rank[index], y[first[order]].tolist()


def _items(y: Any, n: int) -> Tuple[Any, Any]:
    """The dtype (None for a list) and the items of y: a list, or an array of integers or bools."""
    y = column(y, n)
    if isinstance(y, np.ndarray):
        if y.dtype.kind not in "iubfUO":
            raise errors.WrongTypeError(
                "Unknown label type: %s. Labels are integers, bools or strings" % y.dtype
            )
        return y.dtype, y if y.dtype.kind in "iub" else y.tolist()
    return None, list(y)


def targets(y: Any, n: int) -> Any:
    """The targets of a regression as float64 (n). Raises on NaN, infinity and what is no number."""
    y = column(y, n)
    values = y if isinstance(y, np.ndarray) else _array(y)
    if values.dtype.kind not in "iubfO" or (
        values.dtype.kind == "O" and any(isinstance(v, str) for v in values.tolist())
    ):
        raise errors.WrongTypeError(
            "y holds %s; the target of a regression is a number"
            % ("strings" if values.dtype.kind in "UO" else values.dtype)
        )
    try:
        values = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise errors.WrongTypeError("y holds items that are no numbers: %s" % error) from error
    if np.isnan(values).any():
        raise errors.BadLabelError("Input y contains NaN")
    if np.isinf(values).any():
        raise errors.BadLabelError(
            "Input y contains infinity or a value too large for dtype('float64')"
        )
    return values


def _warn_of_column() -> None:
    import sys

    theirs = getattr(sys.modules.get("sklearn.exceptions"), "DataConversionWarning", UserWarning)
    warn(
        "A column-vector y was passed when a 1d array was expected: it counts as y.ravel()",
        theirs,
    )
