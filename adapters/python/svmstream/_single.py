"""One row at a time: learned, scored, labelled late and removed again."""
from __future__ import annotations

from typing import Any, Dict, Tuple, TypeVar

from . import _rows, errors
from ._labels import NONE
from ._library import _content, check, failure, ffi, fill_id, from_value, lib
from ._results import Alert, Evidence, Step
from ._saving import Saved

S = TypeVar("S", bound="Single")
_NULL = ffi.NULL


class Single(Saved):
    """learn_one, step, label and forget, and the score of one row."""

    __slots__ = ()

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
        """Learns one row like learn_one, and returns what was known before: prediction, evidence,
        alerts.

        Auto and ALSVM have evidence (novelty, p ...) with settings={"novelty": "fosvm1"}; without,
        it is nan.
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
        prediction, evidence = out.prediction, out.evidence
        return Step(
            y=self._predicted(prediction),
            proba=self._proba(prediction),
            scores=tuple(ffi.unpack(prediction.scores, prediction.rows))
            if prediction.scores != _NULL
            else (),
            interval=(prediction.low, prediction.high) if prediction.ranged else None,
            learned=out.learned,
            evidence=Evidence(
                evidence.novelty, evidence.p, evidence.surprise, evidence.anomaly, evidence.alarm
            )
            if evidence.known
            else Evidence(),
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

    def _empty(self) -> Any:
        """The row of a dict without keys: every column is 0. Without values while there are no
        columns.
        """
        columns = self.columns
        if not columns:
            return self._rows.row([0.0] * self._width()).row
        numbers = set(self.features).intersection(columns)
        return self._rows.row({min(numbers): 0.0} if numbers else {columns[0]: None}).row

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
        """Removes all rows of that id. Returns how many there were.

        Exact with ALSVM: the model is then that of the others. With Auto some members keep what
        they learned of the row (`svmstream help guarantees`).
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
