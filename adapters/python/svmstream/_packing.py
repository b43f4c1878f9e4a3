"""Rows and requests as msgpack: what `send` and `send_many` take, made into the messages of a
process.
"""
from __future__ import annotations

import decimal
import numbers
from collections.abc import Iterable, Mapping
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union, cast

import numpy as np

from . import errors
from ._rows import MISSING, is_missing, seconds, unmasked
from .wire import FLOAT32, FLOAT64, Sample, msgpack

_UNPACKABLE = (errors.SvmstreamError, OverflowError, TypeError, ValueError)


def _default(item: Any) -> Any:
    """What msgpack does not know: scalars and arrays of numpy, times."""
    if isinstance(item, int):
        raise errors.TooLargeError("an integer does not fit 64 bits")
    if getattr(item, "ndim", None) == 0 and hasattr(item, "item"):
        plain = item.item()
        if type(plain) in (bool, int, float, str):
            return plain
    if isinstance(item, np.ndarray):
        return item.tolist()
    if type(item).__name__ in MISSING:
        return None
    if isinstance(item, Mapping):
        return dict(item)
    if isinstance(item, (numbers.Real, decimal.Decimal)):  # a fraction, too
        return float(item)
    raise _Unknown("a value is a %s%s" % (type(item).__name__, _allowed(item)))


class _Unknown(errors.WrongTypeError):
    """A value of a type that no message can have."""


def _allowed(item: Any) -> str:
    """What a value may be, and what to do with this one."""
    hint = "give the time of a row as ts=" if hasattr(item, "year") else "str() makes it a word"
    return ": numbers, strings, bools and None are allowed (%s)" % hint


def _misfit(sample: Mapping[str, Any]) -> errors.WrongTypeError:
    """The error of a sample whose packing failed, with the name of the value."""
    x = sample["x"]
    cells = x.items() if isinstance(x, Mapping) else enumerate(x) if isinstance(x, list) else ()
    places = [(what, item) for what, item in sample.items() if what != "x"]
    for name, item in [("x[%r]" % (key,), item) for key, item in cells] + places:
        try:
            pack({"": item})
        except _Unknown:
            return errors.WrongTypeError("%s is a %s%s"
                                         % (name, type(item).__name__, _allowed(item)))
        except errors.SvmstreamError:
            pass
    return errors.WrongTypeError("a name of x is not a string or an integer")


def pack(message: Mapping[str, Any]) -> bytes:
    """A request or a sample as msgpack."""
    return _checked(msgpack.Packer(default=_default, use_bin_type=True), message)


def _checked(packer: Any, message: Any) -> bytes:
    try:
        return packer.pack(message)  # type: ignore[no-any-return]
    except errors.SvmstreamError:
        raise
    except OverflowError:
        raise errors.TooLargeError("an integer does not fit 64 bits") from None
    except (TypeError, UnicodeEncodeError) as reason:
        raise errors.WrongTypeError("the message cannot be packed: %s" % reason) from None
    except ValueError as reason:  # nested too deep, or larger than msgpack can be
        raise errors.TooDeepError("the message cannot be packed: %s" % reason) from None


def _array(x: Any, missing: Optional[str]) -> Any:
    """One row of numpy: packed numbers, or a list where values are missing or words."""
    unmasked(x, "x")
    if x.ndim != 1:
        raise errors.WrongTypeError("x has %d dimensions; a row has one (send_many takes arrays "
                                    "of two)" % x.ndim)
    if x.dtype.kind not in "fiub":
        return _list(x.tolist(), missing)
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        place = int(np.argmin(np.isfinite(x)))
        if missing is None or np.isinf(x).any():
            raise errors.NotFiniteError("x[%d] is %s: give missing= where NaN is a missing value"
                                        % (place, float(x[place])))
        return _list(x.tolist(), missing)
    if x.dtype == np.float32:
        return msgpack.ExtType(FLOAT32, x.astype("<f4", copy=False).tobytes())
    return msgpack.ExtType(FLOAT64, x.astype("<f8", copy=False).tobytes())


def _gaps(values: Any) -> bool:
    try:
        return None in values
    except ValueError:  # an array has no truth value
        raise errors.WrongTypeError("a value of x is an array; a value is a number, a word (str) "
                                    "or None") from None


def _list(x: List[Any], missing: Optional[str]) -> List[Any]:
    return [None if is_missing(v) else v for v in x] if missing is not None else x


def settings(given: Optional[Mapping[str, Any]], more: Mapping[str, Any]) -> Dict[str, Any]:
    """The settings of a request `config`."""
    if given is not None and not isinstance(given, Mapping):
        raise errors.SettingError("settings is a dict of names and values, not %r; the present "
                                  "ones are config()[NAME]" % (given,))
    return {**(given or {}), **more}


class RowPacker:
    """Rows as samples in msgpack. `missing`: the policy that goes with rows with a missing value.
    """

    def __init__(self, missing: Optional[str] = None) -> None:
        if missing not in (None, "mean", "zero", "drop", "refuse"):
            raise errors.SettingError("missing is %r; it must be None, mean, zero, drop or refuse"
                                      % (missing,))
        self.missing = missing
        self._packer = msgpack.Packer(default=_default, use_bin_type=True)

    def _x(self, x: Any) -> Tuple[Any, bool]:
        """(the features as msgpack takes them, is a value missing)"""
        if type(x) is dict and self.missing is None:
            try:
                return x, None in x.values()
            except ValueError:  # an array has no truth value
                return x, _gaps(x.values())
        if not isinstance(x, (dict, list, tuple, np.ndarray)):
            if hasattr(x, "to_dict") and hasattr(x, "index"):  # a Series of pandas
                x = {k: None if is_missing(v) else v for k, v in x.to_dict().items()}
            elif isinstance(x, Mapping):
                x = dict(x)
            elif (hasattr(x, "__iter__") and hasattr(x, "__len__")
                  and not isinstance(x, (str, bytes, bytearray, set, frozenset))):
                x = list(x)
            else:
                raise errors.WrongTypeError("x is a %s; a row is a dict, a sequence or an array "
                                            "of numpy"
                                            % type(x).__name__)
        if isinstance(x, dict):
            if self.missing is not None:
                x = {k: None if is_missing(v) else v for k, v in x.items()}
            return x, _gaps(x.values())
        x = _array(x, self.missing) if isinstance(x, np.ndarray) else _list(list(x), self.missing)
        return x, isinstance(x, list) and _gaps(x)

    def row(self, x: Any, y: Any = None, id: Any = None, ts: Any = None, w: Any = None,
            key: Any = None) -> bytes:
        """One sample. Raises what is wrong with it, as far as it shows here."""
        x, gaps = self._x(x)
        sample: Dict[str, Any] = {"x": x}
        if y is not None:
            sample["y"] = y
        if id is not None:
            sample["id"] = id
        if ts is not None:
            sample["ts"] = seconds(ts)
        if w is not None and w != 1.0:
            sample["w"] = w
        if key is not None:
            sample["key"] = key
        if gaps or self.missing is not None:
            sample["missing"] = self.missing or "mean"
        try:
            return _checked(self._packer, sample)
        except _Unknown:
            raise _misfit(sample) from None

    def rows(self, rows: Any, y: Any = None, id: Any = None, ts: Any = None, w: Any = None,
             key: Any = None) -> Iterator[Union[bytes, errors.SvmstreamError]]:
        """The samples of what `send_many` takes, one after the other; an error in the place of one
        that cannot be sent.
        """
        table = unmasked(rows, "rows")
        if hasattr(rows, "columns") and hasattr(rows, "itertuples"):  # a DataFrame
            table = dicts(rows)
        elif isinstance(rows, np.ndarray) and rows.ndim != 2:
            raise errors.WrongTypeError("rows has %d dimensions; an array of rows has two"
                                        % rows.ndim)
        elif isinstance(rows, (str, bytes, Mapping)):
            raise errors.WrongTypeError("rows is a %s; it must be an iterable of rows"
                                        % type(rows).__name__)
        if isinstance(rows,
                      np.ndarray) and rows.dtype.kind in "fiub" and id is ts is w is key is None:
            yield from self._matrix(rows, y)
            return
        columns = [_column(c, what, rows) for what,
                   c in (("y", y), ("id", id), ("ts", ts), ("w", w), ("key", key))]
        plain, array = columns == [None] * len(columns), isinstance(table, np.ndarray)
        usual, pack = plain and self.missing is None, self._packer.pack
        for item in table:
            # The common one, (dict, label) without gaps, by the shortest way; `row` says what is
            # wrong with it.
            if usual and type(item) is tuple and len(item) == 2 and type(item[0]) is dict:
                x, label = item
                try:
                    gaps = label is None or None in x.values()
                    row = b"" if gaps else pack({"x": x, "y": label})
                except _UNPACKABLE:
                    row = b""
                if row:
                    yield row
                    continue
            sample: Tuple[Any, ...] = Sample(item) if array else _sample(item)
            if not plain:
                sample = (sample[0], *(next(c) if c is not None else own
                                       for c, own in zip(columns, sample[1:])))
            try:
                yield self.row(*sample)
            except errors.SvmstreamError as error:
                yield error

    def _matrix(self, rows: np.ndarray[Any, Any],
                y: Any) -> Iterator[Union[bytes, errors.SvmstreamError]]:
        """Rows of numbers, the fast way: what is the same in all of them is packed once, and a
        label once a class.
        """
        labels = _column(y, "y", rows)
        dtype = "<f4" if rows.dtype == np.float32 else "<f8"
        code = FLOAT32 if dtype == "<f4" else FLOAT64
        packer = msgpack.Packer(default=_default, use_bin_type=True)
        width = rows.shape[1] * np.dtype(dtype).itemsize
        extension = packer.pack(msgpack.ExtType(code, bytes(width)))
        head = extension[:len(extension) - width]
        starts = b"\x81\xa1x" + head, b"\x82\xa1x" + head
        ends: Dict[Any, bytes] = {}
        for begin in range(0, len(rows), 1024):
            block = rows[begin:begin + 1024]
            finite = np.isfinite(block).all(axis=1).tolist() if rows.dtype.kind == "f" else None
            data = np.ascontiguousarray(block, dtype).tobytes()
            for i in range(len(block)):
                label = None if labels is None else next(labels)
                if width == 0 or (finite is not None and not finite[i]):
                    try:
                        yield self.row(block[i], label)
                    except errors.SvmstreamError as error:
                        yield error
                    continue
                body = data[i * width:(i + 1) * width]
                if label is None:
                    yield starts[0] + body
                    continue
                kind = (type(label), label)
                end = ends.get(kind)
                if end is None:
                    try:
                        end = b"\xa1y" + _checked(packer, label)
                    except errors.SvmstreamError as error:
                        yield error
                        continue
                    if len(ends) < 4096:
                        ends[kind] = end
                yield starts[1] + body + end


def dicts(frame: Any) -> Iterator[Dict[Any, Any]]:
    """The rows of a DataFrame of pandas; NaN, NaT and NA are None."""
    names = [c if isinstance(c, (str, int)) else str(c) for c in frame.columns]
    for row in frame.itertuples(index=False, name=None):
        yield {k: None if is_missing(v) else v for k, v in zip(names, row)}


def _column(values: Any, what: str, rows: Any) -> Optional[Iterator[Any]]:
    """An iterator over what goes with the rows; refused if it has another length than they."""
    if values is None:
        return None
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise errors.WrongTypeError("%s is a %s; send_many takes one for each row"
                                    % (what, type(values).__name__))
    sizes = [len(v) for v in (values, rows) if hasattr(v, "__len__")]
    if len(set(sizes)) == 2:
        raise errors.WrongDimensionError("%s has %d entries for %d rows"
                                         % (what, sizes[0], sizes[1]))
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return cast(Iterator[Any], iter(values.tolist()))
    return _endless(values, what)


def _endless(values: Iterable[Any], what: str) -> Iterator[Any]:
    yield from values
    raise errors.WrongDimensionError("%s ended before the rows" % what)


def _sample(item: Any) -> Tuple[Any, ...]:
    """A row of an iterable, x, (x, y), (x, y, {"id", "ts", "w", "key"}) or a Sample, in the order
    of a Sample's members.
    """
    if isinstance(item, Sample):
        return item
    if type(item) is tuple and 2 <= len(item) <= 3 and (
            isinstance(item[0], (Mapping, list, tuple, np.ndarray)) or hasattr(item[0], "to_dict")):
        rest = item[2] if len(item) == 3 else {}
        if not isinstance(rest, Mapping) or not set(rest) <= {"id", "ts", "w", "key"}:
            raise errors.WrongTypeError('the third of (x, y, {...}) is a dict of id, ts, w and key')
        return Sample(item[0], item[1], **rest)
    return Sample(item)
