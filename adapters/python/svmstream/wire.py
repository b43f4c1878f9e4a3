"""Rows as the messages of a running process, and its events as typed mappings.

An event is a mapping of the keys that `svmstream help protocol` lists; the usual ones are
attributes as well:

>>> from svmstream.wire import Score
>>> score = Score({"id": 7, "yhat": "rain", "scores": [1.5], "classes": ["dry", "rain"],
...                "proba": [0.1, 0.9]})
>>> score.yhat, score.proba["rain"], score.get("novelty")
('rain', 0.9, None)
"""
from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import (TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional, Tuple, Type,
                    Union, cast)

import numpy as np

from . import errors
from ._library import Value
from ._rows import MISSING, is_missing, seconds, unmasked

__all__ = ["Alert", "BankEvent", "ErrorEvent", "Event", "ModelEvent", "Sample", "Score", "Stats",
           "Status"]

msgpack: Any = importlib.import_module("msgpack")  # it has no types

_UNPACKABLE = (errors.SvmstreamError, OverflowError, TypeError, ValueError)
FLOAT32, FLOAT64 = 1, 2  # ext types of packed numbers


class Sample(NamedTuple):
    """A row with all that may go with it, for `send_many`.

    `ts` is in seconds since 1970, or a datetime (UTC if it names no zone); `w` a weight above 0;
    `key` selects the model of a stream with keys.
    """

    x: Any
    y: Any = None
    id: Union[None, int, str] = None
    ts: Any = None
    w: Optional[float] = None
    key: Union[None, int, str] = None


# ---- events

if TYPE_CHECKING:
    _Keys = Mapping[str, Any]
else:
    _Keys = Mapping


class Event(_Keys):
    """What a process published or replied: a mapping; `raw` is the dict, `topic` the topic or ''.

    Every key that is a name is an attribute too, unless Mapping has a method of this name
    (`event["keys"]`).
    """

    __slots__ = {"raw": "The dict of all keys.", "topic": "The topic, or '' of a reply.",
                 "payload": "The bytes of the event, or b'' of a reply."}

    def __init__(self, raw: Dict[str, Any], topic: str = "", payload: bytes = b"") -> None:
        self.raw, self.topic, self.payload = raw, topic, payload

    def __getitem__(self, key: str) -> Any:
        return self.raw[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def __len__(self) -> int:
        return len(self.raw)

    def __getattr__(self, name: str) -> Any:
        if name in Event.__slots__:  # not set yet, while an event is copied or unpickled
            raise AttributeError(name)
        try:
            return self.raw[name]
        except KeyError:
            raise AttributeError("this %s has no key %r; it has %s" % (type(self).__name__, name,
                                                                     ", ".join(map(str, self.raw))
                                                                     or "none")) from None

    def __repr__(self) -> str:
        return "%s(%r)" % (type(self).__name__, self.raw)

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.raw, self.topic, self.payload)


class Score(Event):
    """The prediction for a row, made before it was learned.

    What the process did not give is None. A row whose reply was lost with a connection, that
    `missing drop` leaves out, or that was taken before, was acknowledged and has no prediction:
    `scored` is False, and `note` says why.
    """

    __slots__ = {"number": "The number of the row in its source, from 0; None of an event.",
                 "note": "Why there is no prediction, or ''."}

    def __init__(self, raw: Dict[str, Any], topic: str = "", payload: bytes = b"",
                 number: Optional[int] = None,
                 note: str = "") -> None:
        # As Event's, written out: one is made for each row.
        self.raw, self.topic, self.payload = raw, topic, payload
        self.number, self.note = number, note

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.raw, self.topic, self.payload, self.number, self.note)

    @property
    def scored(self) -> bool:
        """Is there a prediction?"""
        return "yhat" in self.raw or "scores" in self.raw

    @property
    def duplicate(self) -> bool:
        """Was the row taken before? It is not learned again."""
        return bool(self.raw.get("duplicate"))

    @property
    def id(self) -> Union[None, int, str]:
        """The id of the row."""
        return self.raw.get("id")

    @property
    def yhat(self) -> Value:
        """The predicted class or number; None while no class is known."""
        return self.raw.get("yhat")

    @property
    def y(self) -> Value:
        """The true label, if the row came with it."""
        return self.raw.get("y")

    @property
    def scores(self) -> List[float]:
        """One for each row of the model's weights: two classes have one, positive for the second.
        """
        return self.raw.get("scores") or []

    @property
    def classes(self) -> List[Value]:
        """The labels in the order of first sight; empty for a regression."""
        return self.raw.get("classes") or []

    @property
    def proba(self) -> Dict[Value, float]:
        """Class to probability; empty before there are two classes, and for a regression."""
        return dict(zip(self.classes, self.raw.get("proba") or ()))

    @property
    def interval(self) -> Optional[Tuple[float, float]]:
        """(low, high) of a regression, which holds the target with the probability of the setting
        `interval`.
        """
        pair = self.raw.get("interval")
        return (pair[0], pair[1]) if pair else None

    @property
    def novelty(self) -> Optional[float]:
        """How new the row is: 0 at the border of normal, below 0 inside, towards 1 far away."""
        return self.raw.get("novelty")

    @property
    def p(self) -> Optional[float]:
        """The p-value of the novelty."""
        return self.raw.get("p")

    @property
    def alarm(self) -> Optional[float]:
        """Closeness to an alert: 1 where one may open."""
        return self.raw.get("alarm")

    @property
    def surprise(self) -> Optional[float]:
        """-log10 p of the detector with the largest surprise."""
        return self.raw.get("surprise")

    @property
    def anomaly(self) -> Optional[float]:
        """0 to 1, for ranking rows: higher is more anomalous."""
        return self.raw.get("anomaly")

    @property
    def model(self) -> Optional[int]:
        """Version of the model that made the score."""
        return self.raw.get("model")

    @property
    def bank(self) -> Optional[int]:
        """Version of the bank that made the score (method auto)."""
        return self.raw.get("bank")

    @property
    def members(self) -> Dict[str, List[float]]:
        """The scores of the bank's members (setting score.members)."""
        return self.raw.get("members") or {}


class ModelEvent(Event):
    """A published model, as a mapping like a dict; `Model.from_event(event)` predicts with it."""

    __slots__ = ()


class BankEvent(Event):
    """A published bank of learners (method auto), as a mapping like a dict."""

    __slots__ = ()


class Alert(Event):
    """An alert: `number`, `kind`, `alert`, `state`, `text`; `severity`, `detector`, `rule`, `top`
    where it has them.

    A mapping like a dict; `svmstream help alerts` explains what opens one.
    """

    __slots__ = ()

    @property
    def severity(self) -> Optional[str]:
        """notice, warning or serious."""
        return self.raw.get("severity")

    @property
    def detector(self) -> Optional[str]:
        """The detector with the largest surprise."""
        return self.raw.get("detector")

    @property
    def rule(self) -> Optional[str]:
        """The rule, of an alert of kind `rule`."""
        return self.raw.get("rule")

    @property
    def top(self) -> List[Dict[str, Any]]:
        """The features that contribute most, largest first."""
        return self.raw.get("top") or []


class ErrorEvent(Event):
    """Something that the process refused or reports, as a mapping like a dict: `code`, `reason`,
    `count`.
    """

    __slots__ = ()


class Stats(Event):
    """Counters and quality of the stream, as a mapping like a dict."""

    __slots__ = ()


class Status(Event):
    """The reply to `status`, as a mapping like a dict: the figures of stats, and of the process."""

    __slots__ = ()


KINDS: Dict[str, Type[Event]] = {"score": Score, "model": ModelEvent, "bank": BankEvent,
                                 "alert": Alert,
                                 "error": ErrorEvent, "stats": Stats}


# ---- unpacking


def _extension(code: int, data: bytes) -> Any:
    """Packed numbers become arrays of numpy (read-only); other extensions stay what they are."""
    if code in (FLOAT32, FLOAT64):
        return np.frombuffer(data, "<f4" if code == FLOAT32 else "<f8")
    return msgpack.ExtType(code, data)


def unpack(data: Any) -> Any:
    """The object of a message of the process. Raises FileError for bytes that are no message."""
    try:
        return msgpack.unpackb(data, strict_map_key=False, ext_hook=_extension)
    except (ValueError, TypeError, RecursionError) as reason:
        raise errors.FileError("these bytes are no message of svmstream: %s"
                               % (str(reason) or type(reason).__name__)) from None


def unpack_map(data: Any, source: str) -> Dict[str, Any]:
    """As `unpack`, of a message that is a map. `source`: where it came from, for the error."""
    try:
        message = unpack(data)
    except errors.FileError as reason:
        raise errors.FileError("%s: what answers there is not svmstream: %s"
                               % (source, reason)) from None
    if not isinstance(message, dict):
        raise errors.FileError("%s: what answers there is not svmstream" % source)
    return message


def event(topic: bytes, payload: bytes) -> Event:
    """The typed event of two frames."""
    name = topic.decode("utf-8", "replace")
    return KINDS.get(name.partition(".")[0], Event)(unpack_map(payload, name or "an event"), name,
                                                    payload)


class Losses:
    """Counts the events that were lost on the way, by the `seq` of each topic."""

    TOPICS = 1_000_000  # remembered; beyond, counting begins again

    def __init__(self) -> None:
        self.lost = 0
        self._last: Dict[str, Tuple[int, int]] = {}

    def newer(self, event: Event) -> bool:
        """False: a repetition of a retained event, which a subscriber ignores."""
        epoch, seq = event.raw.get("epoch", 0), event.raw.get("seq", 0)
        if type(epoch) is not int or type(seq) is not int:
            raise errors.FileError("%s: an event whose epoch and seq are no integers is not one of "
                                   "svmstream" % event.topic)
        last = self._last.get(event.topic)
        if last is not None and last[0] == epoch:
            if seq <= last[1]:
                return False
            self.lost += seq - last[1] - 1
        elif last is not None:
            self.lost += seq
        elif len(self._last) >= self.TOPICS:
            self._last.clear()
        self._last[event.topic] = (epoch, seq)
        return True


# ---- packing


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
    raise errors.WrongTypeError("a value is a %s; numbers, strings and None are possible"
                                % type(item).__name__)


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
        raise errors.WrongTypeError("a value of x is an array; a value is a number, a word (str) or "
                                    "None") from None


def _list(x: List[Any], missing: Optional[str]) -> List[Any]:
    return [None if is_missing(v) else v for v in x] if missing is not None else x


def settings(given: Optional[Mapping[str, Any]], more: Mapping[str, Any]) -> Dict[str, Any]:
    """The settings of a request `config`."""
    if given is not None and not isinstance(given, Mapping):
        raise errors.SettingError("settings is a dict of names and values, not %r; the present ones "
                                  "are config()[NAME]" % (given,))
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
        return _checked(self._packer, sample)

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
            # The usual one, (dict, label) without gaps, by the shortest way; `row` says what is
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


def unpack_plain(data: bytes) -> Any:
    """As `unpack`, with packed numbers left as they are: to be packed again."""
    return msgpack.unpackb(data, strict_map_key=False)
