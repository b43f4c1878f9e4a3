"""NativeStream: one stream of the library with its lock, its settings, figures and alerts; the base
of all learners.

All private state is in slots, so that the attributes of an object (`vars`) are its parameters
alone. Every call of C happens under the object's lock and without Python's global one: different
objects learn at the same time, and one object may be used from several threads."""
from __future__ import annotations

import threading
from collections import deque
from typing import Any, Deque, Dict, Iterable, List, Mapping, Optional, TypeVar, Union

from . import _fork, _rows, errors
from ._labels import Labels
from ._library import Error, check, failure, ffi, lib, settings as c_settings
from ._params import Parameters
from ._results import Alert, alert_of

S = TypeVar("S", bound="NativeStream")
MAX_ALERTS = 1000  # alert events kept as Python objects, 3 KB each
_NULL = ffi.NULL
_REFUSED_SETTINGS = {
    "key": "an object is one stream; make one object for each key",
    "task": "it is the parameter task=",
    "method": "the class decides it: Auto, ALSVM (with falsvm=), Novelty, Monitor",
}


def free(handle: Any) -> None:
    lib.svs_stream_free(ffi.new("svs_stream **", handle))


class NativeStream(Parameters):
    """Owner of one svs_stream. Subclasses have parameters, `_settings` and `_maker`."""

    STATE = (
        "_handle",
        "_out",
        "_err",
        "_rows",
        "_labels",
        "_fitted",
        "_declared",
        "_extra",
        "_named",
        "_events",
        "_target",
        "_regress",
        "_keep",
        "_view",
    )
    __slots__ = (*STATE, "_lock", "__weakref__", "__dict__")

    _maker = staticmethod(lib.svs_stream_new)
    _kind = "stream"
    _takes_labels = True
    _worker = False  # a thread of C belongs to the stream
    missing: Optional[str] = None
    settings: Optional[Mapping[str, Any]] = None

    # ---- life

    def _settings(self) -> Dict[str, Any]:
        """The parameters as settings of `svmstream help settings`."""
        raise NotImplementedError

    def _all_settings(self) -> Dict[str, Any]:
        given = self._settings()
        extra = self.settings or {}
        if not isinstance(extra, Mapping):
            raise errors.SettingError(
                "settings is a dict of names and values, not %s" % type(extra).__name__
            )
        for name in extra:
            if name in _REFUSED_SETTINGS:
                raise errors.SettingError(
                    "settings: %s cannot be set: %s" % (name, _REFUSED_SETTINGS[name])
                )
        return {**{k: v for k, v in given.items() if v is not None}, **extra}

    def _make(self) -> Any:
        """A new stream of the present parameters. SettingError: which one and why."""
        pairs, count, keep = c_settings(self._all_settings())
        err = Error()
        handle = self._maker(pairs, count, err)
        del keep
        if handle == _NULL:
            raise failure(err)
        return handle

    def _open(self, handle: Any = None) -> None:
        """Begins with nothing learned, or with the stream of an archive."""
        self._lock: Any = threading.RLock()
        self._adopt(ffi.gc(self._make() if handle is None else handle, free))
        _fork.LIVE.add(self)

    def _adopt(self, owned: Any) -> None:
        self._handle = owned
        self._out = ffi.new("svs_outcome *")
        self._err = Error()
        self._rows = _rows.Rows(self.missing is not None)
        self._labels = Labels()
        self._fitted = False
        self._declared: Optional[List[Any]] = None
        self._extra: List[Any] = []
        self._named: List[Any] = []
        self._events: Deque[Alert] = deque(maxlen=MAX_ALERTS)
        self._regress = getattr(self, "task", "classify") == "regress"
        self._target = ffi.new("svs_value *")
        self._target.kind = lib.SVS_REAL
        self._keep: Any = None
        self._view: Any = None

    def _changed(self) -> None:
        handle = ffi.gc(self._make(), free)
        with self._lock:
            if lib.svs_stream_seen(self._handle) == 0:
                self._adopt(handle)

    # ---- alerts

    def _collect(self) -> List[Alert]:
        """Takes the alert events since the last time. The caller holds the lock."""
        count = ffi.new("int *")
        found = lib.svs_stream_alerts(self._handle, count)
        if count[0] < 0:
            raise errors.NoMemoryError(
                "no memory for the alert events; they are kept for the next call"
            )
        alerts = [alert_of(found[i]) for i in range(count[0])]
        self._events.extend(alerts)
        return alerts

    def _notify(self, alerts: Iterable[Alert]) -> None:
        """Reports new alert events, outside of the lock."""

    @property
    def alerts(self) -> List[Alert]:
        """The newest alert events, at most 1,000, oldest first."""
        with self._lock:
            return list(self._events)

    def reset(self: S) -> S:
        """Forgets rows, model, novelty and quality; columns and classes stay. Returns self."""
        with self._lock:
            lib.svs_stream_reset(self._handle)
            self._fitted = False
            found = self._collect()
        self._notify(found)
        return self

    # ---- figures

    def figures(self) -> Dict[str, Union[int, float, str, None]]:
        """The figures of the stream, named as in `svmstream ctl status`; None: not known yet."""
        with self._lock:
            count = ffi.new("int *")
            found = lib.svs_stream_figures(self._handle, count)
            result: Dict[str, Union[int, float, str, None]] = {}
            for i in range(count[0]):
                value: Union[int, float, str, None] = found[i].value
                if found[i].text != _NULL:
                    value = ffi.string(found[i].text).decode("utf-8", "replace")
                elif value != value:
                    value = None
                elif found[i].integral:
                    value = int(found[i].value)
                result[ffi.string(found[i].name).decode()] = value
            return result

    def report(self, seconds: float = 0.0, *, json: bool = False) -> str:
        """The table that `svmstream eval` prints, or its JSON. seconds: the duration that it
        states.
        """
        with self._lock:
            text = lib.svs_stream_report(self._handle, float(seconds), json, self._err)
            if text == _NULL:
                raise failure(self._err)
            return str(ffi.string(text).decode("utf-8", "replace"))

    @property
    def columns(self) -> List[str]:
        """Names of the columns, in the order in which they appeared; empty if they have none."""
        with self._lock:
            names = [
                lib.svs_stream_column(self._handle, i)
                for i in range(lib.svs_stream_columns(self._handle))
            ]
            return [ffi.string(name).decode("utf-8", "replace") for name in names if name != _NULL]

    @property
    def features(self) -> List[str]:
        """Names of the model's features: a column of numbers, or `column=word` for each word."""
        with self._lock:
            names = [
                lib.svs_stream_feature(self._handle, i)
                for i in range(lib.svs_stream_features(self._handle))
            ]
            return [ffi.string(name).decode("utf-8", "replace") for name in names if name != _NULL]

    def _width(self) -> int:
        """Columns of the rows so far. The caller holds the lock."""
        return int(lib.svs_stream_columns(self._handle) or lib.svs_stream_features(self._handle))

    @property
    def seen(self) -> int:
        """Rows accepted so far."""
        with self._lock:
            return int(lib.svs_stream_seen(self._handle))

    @property
    def held(self) -> int:
        """Rows with a label that the model is computed from now."""
        return int(self.figures().get("held") or 0)

    def setting(self, name: str) -> str:
        """The value in force of any setting of `svmstream help settings`."""
        with self._lock:
            text = _NULL
            if "\0" not in str(name):  # where the name would end for C
                data = str(name).encode("utf-8", "replace")
                text = lib.svs_stream_setting(self._handle, data)
            if text == _NULL:
                raise errors.SettingError(
                    "there is no setting %r: see `svmstream help settings`" % name
                )
            return str(ffi.string(text).decode("utf-8", "replace"))

    def configure(self: S, settings: Mapping[str, Any]) -> S:
        """Changes settings at once, all or none, as `svmstream ctl config` does; the model is made
        again from the rows held where that is needed. {"C": 10, "window": 5000}. SettingError:
        unknown, out of range or fixed.
        """
        for name in settings:
            if name in _REFUSED_SETTINGS:
                raise errors.SettingError("%s cannot be set: %s" % (name, _REFUSED_SETTINGS[name]))
        pairs, count, keep = c_settings(settings)
        with self._lock:
            check(lib.svs_stream_configure(self._handle, pairs, count, self._err), self._err)
            del keep
            found = self._collect()
        self._notify(found)
        return self

    def fingerprint(self) -> str:
        """32 hexadecimal digits of the whole state: equal states have equal ones."""
        with self._lock:
            text = ffi.new("char[33]")
            check(lib.svs_stream_hash(self._handle, text, self._err), self._err)
            return str(ffi.string(text).decode())
