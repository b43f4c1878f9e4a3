"""NativeStream: one stream of the library with its lock, its labels and its archive; the base of
all learners.

All private state is in slots, so that the attributes of an object (`vars`) are its parameters
alone. Every call of C happens under the object's lock and without Python's global one: different
objects learn at the same time, and one
object may be used from several threads."""
from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from typing import Any, Deque, Dict, Iterable, List, Mapping, Optional, Tuple, TypeVar, Union

from . import _rows, errors
from ._labels import NONE, Labels
from ._library import (
    Error,
    _content,
    check,
    failure,
    ffi,
    fill_id,
    from_value,
    lib,
    settings as c_settings,
)
from ._params import Parameters
from ._results import Alert, Finding, Step, alert_of

S = TypeVar("S", bound="NativeStream")
MAX_ALERTS = 1000  # alert events kept as Python objects, 3 KB each
_NULL = ffi.NULL
_REFUSED_SETTINGS = {
    "key": "an object is one stream; make one object for each key",
    "task": "it is the parameter task=",
    "method": "the class decides it: Auto, ALSVM (with falsvm=), Novelty, Monitor",
}


_LIVE: "weakref.WeakSet[NativeStream]" = weakref.WeakSet()


class _Forked:
    """The lock of a learner that cannot work in a process after os.fork: its worker thread is not
    there, or another thread was inside of a call.
    """

    def __enter__(self) -> None:
        raise errors.UnavailableError(
            "this learner was made before os.fork() and cannot be used in the child: send it "
            "there by pickle (as joblib and multiprocessing's start method spawn do), or make it "
            "there"
        )

    def __exit__(self, *_: Any) -> None:
        pass


def _after_fork() -> None:
    """In the child: learners with a worker thread are void, the others get a new lock."""
    for stream in list(_LIVE):
        free_lock = not isinstance(stream._lock, _Forked) and stream._lock.acquire(blocking=False)
        if not free_lock or stream._worker or stream.setting("threads") != "1":
            ffi.gc(stream._handle, None)  # freeing it would wait for the thread
            stream._lock = _Forked()
        else:
            stream._lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


def free(handle: Any) -> None:
    lib.svs_stream_free(ffi.new("svs_stream **", handle))


class NativeStream(Parameters):
    """Owner of one svs_stream: rows one by one. Subclasses have parameters, `_settings` and
    `_maker`.
    """

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
        _LIVE.add(self)

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

    # ---- one row

    def learn_one(
        self: S, x: Any, y: Any = None, *, w: float = 1.0, id: Any = None, ts: Any = None
    ) -> S:
        """Learns one row. Returns self.

        x: a dict of columns (numbers, bools, words as str, None = missing; a column that it lacks
            counts as 0), or a sequence of numbers without names. y: label, None = none. w: weight,
            0 = the row is passed over. id: int or str, for `label` and `forget`. ts: seconds since
            1970 or a datetime (UTC, if it names no zone); without it the row arrives now. Raises a
            subclass of svmstream.errors.InputError and learns nothing if something is wrong with
            the row.
        """
        with self._lock:
            row = self._rows.row(x).row
            if row.d == 0:
                row = self._empty()
            if w != 1.0 or id is not None or ts is not None:
                if not self._extras(row, w, id, ts, y):
                    return self
                try:
                    self._learn(row, y)
                finally:
                    row.weight, row.has_ts, row.id = 1.0, False, NONE
            else:
                self._learn(row, y)
            if not self._out.alert_count:
                return self
            found = self._collect()
        self._notify(found)
        return self

    def _learn(self, row: Any, y: Any) -> None:
        """Steps a row with its label; a new label is remembered once it was learned."""
        if y is None:
            row.y = NONE
            code = lib.svs_stream_step(self._handle, row, self._out, self._err)
            if code:
                raise failure(self._err, code)
            return
        fresh = text = None
        if self._regress:
            row.y = self._target_of(y)
        else:
            try:
                row.y = self._labels.cells[y]
            except (KeyError, TypeError):
                fresh, text = self._fresh(y)
                row.y = fresh
        code = lib.svs_stream_step(self._handle, row, self._out, self._err)
        if code:
            raise failure(self._err, code)
        self._fitted = True
        if fresh is not None:
            self._labels.remember(y, fresh, text)

    def _fresh(self, y: Any) -> Tuple[Any, Any]:
        made = self._labels.make(y)  # refuses what no label can be
        if self._declared is not None and y not in self._declared:
            raise errors.BadLabelError(
                "the label %r is not one of the classes that partial_fit was given: %s"
                % (y, ", ".join(map(repr, self._declared)))
            )
        return made

    def _target_of(self, y: Any) -> Any:
        array: Any = getattr(y, "shape", None)  # float() of an array fails, or takes its one value
        if isinstance(y, (str, bytes)) or not hasattr(y, "__float__") or array:
            raise errors.WrongTypeError(
                "y is a %s; the target of a regression is a number" % type(y).__name__
            )
        try:
            number = float(y)
        except OverflowError as error:
            raise errors.TooLargeError("y: %s" % error) from error
        if number - number != 0:
            raise errors.BadLabelError(
                "y is %r; the target of a regression is a finite number" % number
            )
        _content(self._target).r = number
        return self._target[0]

    def _extras(self, row: Any, w: Any, id: Any, ts: Any, y: Any) -> bool:
        """Sets weight, id and time of a row. False: its weight is 0."""
        weight = float(_rows.weights(w, 1)[0]) if w is not None else 1.0
        when = None if ts is None else _rows.seconds(ts)
        if weight == 0:
            return False
        self._keep = fill_id(row.id, id)
        row.weight = weight
        if when is not None:
            row.ts, row.has_ts = when, True
        return True

    def step(
        self, x: Any, y: Any = None, *, w: float = 1.0, id: Any = None, ts: Any = None
    ) -> Step:
        """Learns one row like learn_one, and returns what was known before: prediction, finding,
        alerts.
        """
        with self._lock:
            row = self._rows.row(x).row
            if row.d == 0:
                row = self._empty()
            if not self._extras(row, w, id, ts, y):
                self._score(x)
                return self._step_of(())
            try:
                self._learn(row, y)
            finally:
                row.weight, row.has_ts, row.id = 1.0, False, NONE
            found = tuple(self._collect()) if self._out.alert_count else ()
            result = self._step_of(found)
        self._notify(found)
        return result

    def _step_of(self, alerts: Tuple[Alert, ...]) -> Step:
        out = self._out
        prediction, finding = out.prediction, out.evidence
        return Step(
            y=self._predicted(prediction),
            proba=self._proba(prediction),
            scores=tuple(ffi.unpack(prediction.scores, prediction.rows))
            if prediction.scores != _NULL
            else (),
            interval=(prediction.low, prediction.high) if prediction.ranged else None,
            learned=out.learned,
            finding=Finding(
                finding.novelty, finding.p, finding.surprise, finding.anomaly, finding.alarm
            )
            if finding.known
            else Finding(),
            alerts=alerts,
        )

    def _score(self, x: Any) -> Any:
        """Fills self._out for a row, which changes nothing. The caller holds the lock."""
        row = self._rows.row(x).row
        if row.d == 0:
            row = self._empty()
        if row.d == 0 and lib.svs_stream_seen(self._handle) == 0:  # no columns yet, no prediction
            self._out[0] = ffi.new("svs_outcome *")[0]
            self._out.prediction.predicted = -1
            return self._out
        code = lib.svs_stream_score(self._handle, row, self._out, self._err)
        if code:
            raise failure(self._err, code)
        return self._out

    def _class(self, index: int) -> Any:
        if index >= len(self._named):
            self._named = self._labels.classes(self._handle)
        return self._named[index]

    def _predicted(self, prediction: Any) -> Any:
        if self._regress:
            return from_value(prediction.y)
        index = prediction.predicted
        return None if index < 0 else self._class(index)

    def _proba(self, prediction: Any) -> Dict[Any, float]:
        if prediction.proba == _NULL:
            only = not self._regress and prediction.predicted >= 0 and prediction.class_count == 1
            return {self._class(0): 1.0} if only else {}
        return {
            self._class(i): p
            for i, p in enumerate(ffi.unpack(prediction.proba, prediction.class_count))
        }

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

    # ---- late labels, removal

    def label(self: S, id: Any, y: Any, *, ts: Any = None) -> S:
        """Gives the newest waiting row of that id its label, and learns it. UnknownIdError: no such
        row waits.
        """
        with self._lock:
            cell, keep = self._id(id)
            fresh = text = None
            if y is None:
                raise errors.BadLabelError("y is None: a label is a class or a number")
            if self._regress:
                given = self._target_of(y)
            else:
                try:
                    given = self._labels.cells[y]
                except (KeyError, TypeError):
                    fresh, text = self._fresh(y)
                    given = fresh
            check(
                lib.svs_stream_label(
                    self._handle, cell[0], given, _NULL, self._when(ts), self._err
                ),
                self._err,
            )
            self._fitted = True
            if fresh is not None:
                self._labels.remember(y, fresh, text)
            del keep
            found = self._collect()
        self._notify(found)
        return self

    def forget(self, id: Any, *, ts: Any = None) -> int:
        """Removes all rows of that id, exactly: the model is then that of the others. Returns how
        many there were.

        UnknownIdError: none is held or waits for its label (with window=0 none is held).
        """
        with self._lock:
            cell, keep = self._id(id)
            count = ffi.new("int *")
            check(
                lib.svs_stream_forget(
                    self._handle, cell[0], _NULL, self._when(ts), count, self._err
                ),
                self._err,
            )
            del keep
            return int(count[0])

    @staticmethod
    def _id(id: Any) -> Tuple[Any, Any]:
        cell = ffi.new("svs_value *")
        return cell, fill_id(cell, id)

    @staticmethod
    def _when(ts: Any) -> float:
        return float("nan") if ts is None else _rows.seconds(ts)

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

    def _empty(self) -> Any:
        """The row of a dict without keys: every column is 0. Without values while there are no
        columns.
        """
        columns = self.columns
        if not columns:
            return self._rows.row([0.0] * self._width()).row
        numbers = set(self.features).intersection(columns)
        return self._rows.row({min(numbers): 0.0} if numbers else {columns[0]: None}).row

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
