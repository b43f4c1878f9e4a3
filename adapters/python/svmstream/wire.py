"""The events of a running process as typed mappings, and the rows that it is sent.

An event is a mapping of the keys that `svmstream help protocol` lists; the common ones are
attributes as well:

>>> from svmstream.wire import Score
>>> score = Score({"id": 7, "yhat": "rain", "scores": [1.5], "classes": ["dry", "rain"],
...                "proba": [0.1, 0.9]})
>>> score.yhat, score.proba["rain"], score.get("novelty")
('rain', 0.9, None)
"""
from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import (TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional, Tuple, Type,
                    Union)

import numpy as np

from . import errors
from ._library import Value

__all__ = ["Alert", "BankEvent", "ErrorEvent", "Event", "ModelEvent", "Sample", "Score", "Stats",
           "Status"]

msgpack: Any = importlib.import_module("msgpack")  # it has no types

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
        """The true label, if the row had it."""
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
    def merged(self) -> bool:
        """Did a merged model make the score (merge.from)?"""
        return bool(self.raw.get("merged"))

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


def unpack_plain(data: bytes) -> Any:
    """As `unpack`, with packed numbers left as they are: to be packed again."""
    return msgpack.unpackb(data, strict_map_key=False)


def unpack_map(data: Any, source: str) -> Dict[str, Any]:
    """As `unpack`, of a message that is a map. `source`: its sender, for the error."""
    try:
        message = unpack(data)
    except errors.FileError as reason:
        raise errors.FileError("%s: the peer is not svmstream: %s"
                               % (source, reason)) from None
    if not isinstance(message, dict):
        raise errors.FileError("%s: the peer is not svmstream" % source)
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
