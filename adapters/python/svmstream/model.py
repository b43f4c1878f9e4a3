"""A published linear model, which predicts without the process that learned it.

>>> import numpy as np, svmstream
>>> from svmstream.model import Model
>>> model = Model.from_event({"version": 3, "method": "alsvm", "task": "classify", "d": 2,
...                           "features": ["t", "p"], "classes": ["cold", "warm"],
...                           "W": np.array([1.0, 0.0]), "b": -20.0, "C": 1.0, "window": 0,
...                           "seen": 9, "learned": 9, "serves": True, "reproduces": True})
>>> model.predict([[25.0, 1.0], [3.0, 1.0]]).tolist(), model.predict_one({"t": 21, "p": 0})
(['warm', 'cold'], 'warm')
>>> model.decision_function(np.array([[25.0, 1.0]])).tolist()
[5.0]
"""
from __future__ import annotations

import json
import os
import threading
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

import numpy as np

from . import _packing, _rows, errors, wire
from ._library import Error, Value, check, failure, ffi, from_value, lib

__all__ = ["Model"]

SIZE = 1 << 30  # the largest model file, bytes


class Model:
    """A linear model in the units of the raw input: score = W x + b.

    `coef_` (rows x d) and `intercept_` (rows) have one row for two classes (positive: the second)
    and for a regression, and one for each class from three on. `classes_`: the labels;
    `feature_names_in_`: the features, or None. `reproduces`: the published scores that carry this
    `version` are this model's; false with `method auto`, where a bank of learners makes them (see
    `svmstream help protocol`, Event bank).

    Rows are arrays of the model's features, or raw rows: dicts of numbers, words and None, to which
    the model's schema is applied as the process applies it. Safe to use from several threads. It
    can be pickled.
    """

    def __init__(self, payload: bytes) -> None:
        """payload: that of a `model.` event. `load` and `from_event` take other forms."""
        err = Error()
        model = lib.svs_model_decode(payload, len(payload), err)
        if model == ffi.NULL:
            raise failure(err)
        self._payload = bytes(payload)
        self._model = ffi.gc(model, lambda m: lib.svs_model_free(ffi.new("svs_model **", m)))
        self._schema: Any = None
        self._lock = threading.Lock()
        m = self._model
        shape = (m.rows, m.d)
        self.coef_ = np.frombuffer(ffi.buffer(m.W, 8 * m.rows * m.d), float).reshape(shape).copy()
        self.intercept_ = np.frombuffer(ffi.buffer(m.b, 8 * m.rows), float).copy()
        self.classes_: List[Value] = [from_value(m.classes[k]) for k in range(m.class_count)]
        self.feature_names_in_: Optional[List[str]] = None
        if m.features != ffi.NULL:
            self.feature_names_in_ = [ffi.string(m.features[j]).decode() for j in range(m.d)]
        self.n_features_in_ = int(m.d)
        self.task: str = "regress" if m.task == lib.SVS_REGRESS else "classify"
        self.version = int(m.version)
        self.method: str = ffi.string(m.method).decode()
        self.C = float(m.C)
        self.reproduces = bool(wire.unpack(self._payload).get("reproduces"))
        self.calibrated = m.calibration.a > 0

    # ---- where models are

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"]) -> "Model":
        """A model of a file: `svmstream eval --model-out`, the payload of an event, or `svmstream
        model export` (JSON).
        """
        name = os.fspath(path)
        try:
            with open(name, "rb") as file:
                if os.fstat(file.fileno()).st_size > SIZE:
                    raise errors.TooLargeError("%s: larger than a model can be" % name)
                data = file.read()
        except OSError as reason:
            raise errors.FileError("%s: %s" % (name, reason.strerror)) from None
        try:
            if data.lstrip()[:1] == b"{":
                return cls.from_event(json.loads(data))
            return cls(data)
        except errors.SvmstreamError as error:
            raise errors.by_code(error.code,
                                 "%s: no model that can be read: %s; `svmstream eval --model-out` "
                                 "and "
                                             "`svmstream model export` write one"
                                             % (name, error)) from None
        except ValueError as reason:
            raise errors.by_code("not_json", "%s: no model that can be read: %s"
                                 % (name, reason)) from None

    @classmethod
    def from_event(cls, event: Union[bytes, Mapping[str, Any]]) -> "Model":
        """A model of an event (`Stream.models`), of its payload as bytes, or of the same map as a
        dict.
        """
        if isinstance(event, (bytes, bytearray, memoryview)):
            return cls(bytes(event))
        if isinstance(event, wire.Event) and event.payload:
            return cls(event.payload)
        if not isinstance(event, Mapping):
            raise errors.WrongTypeError("a model is made of an event, of bytes or of a dict, not "
                                        "of a %s"
                                        % type(event).__name__)
        return cls(_packing.pack(_packed(dict(event))))

    def to_bytes(self) -> bytes:
        """The payload of its event: what `load` and `svmstream model` read."""
        return self._payload

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes that to a file."""
        with open(path, "wb") as file:
            file.write(self._payload)

    def __reduce__(self) -> Tuple[Any, ...]:
        return Model, (self._payload,)

    def __repr__(self) -> str:
        return "Model(version=%d, method=%r, task=%r, features=%d, classes=%r)" % (
            self.version, self.method, self.task, self.n_features_in_, self.classes_)

    # ---- arrays

    def _matrix(self, X: Any) -> "np.ndarray[Any, Any]":
        """n x d numbers of an array, of a DataFrame or of a list of raw rows (dicts)."""
        if hasattr(X, "columns") and hasattr(X, "itertuples"):
            X = list(_packing.dicts(X))
        if isinstance(X, (list, tuple)) and len(X) and isinstance(X[0], Mapping):
            return np.array([self._row(x, None) for x in X]).reshape(len(X), self.n_features_in_)
        _rows.unmasked(X, "X")
        try:
            table = np.ascontiguousarray(X, dtype=float)
        except (TypeError, ValueError):
            raise errors.WrongTypeError(
                "X is one row: give a list of rows, or call predict_one" if isinstance(X, Mapping)
                else "X is not an array of numbers: give rows with words as a list of dicts"
            ) from None
        if table.ndim != 2 or table.shape[1] != self.n_features_in_:
            raise errors.WrongDimensionError("X has the shape %r; it must be (rows, %d)"
                                             % (table.shape, self.n_features_in_))
        if not np.isfinite(table).all():
            raise errors.NotFiniteError("X has NaN or infinite values; a missing value is None in "
                                        "a raw row (a dict)")
        return table

    def _scores(self, table: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
        """n x rows, by the library."""
        n, rows = len(table), len(self.intercept_)
        scores = np.empty((n, rows))
        x, s = ffi.from_buffer("double[]", table), ffi.from_buffer("double[]", scores)
        d, call, model = self.n_features_in_, lib.svs_model_scores, self._model
        for i in range(n):
            call(model, x + i * d, s + i * rows)
        return scores

    def decision_function(self, X: Any) -> "np.ndarray[Any, Any]":
        """Scores: n of them for two classes (positive: the second) and for a regression, else n x
        classes.
        """
        scores = self._scores(self._matrix(X))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> "np.ndarray[Any, Any]":
        """The class of each row, or its number in a regression."""
        scores = self._scores(self._matrix(X))
        if self.task == "regress":
            return scores[:, 0]
        if not self.classes_:
            raise errors.not_fitted("the model knows no class yet")
        rows, s, call = scores.shape[1], ffi.from_buffer("double[]", scores), lib.svs_model_predict
        places = [call(self._model, s + i * rows) for i in range(len(scores))]
        words = any(isinstance(c, str) for c in self.classes_)
        labels = np.array(self.classes_, dtype=object if words else np.int64)
        return labels[np.array(places, dtype=np.intp)]

    def predict_proba(self, X: Any) -> "np.ndarray[Any, Any]":
        """n x classes probabilities, in the order of `classes_`."""
        scores = self._scores(self._matrix(X))
        if not self.calibrated:
            raise errors.UnavailableError("this model has no probabilities: it is of a "
                                          "regression, or of a stream that "
                                          "has not seen two classes")
        rows, proba = scores.shape[1], np.empty((len(scores), len(self.classes_)))
        s, p = ffi.from_buffer("double[]", scores), ffi.from_buffer("double[]", proba)
        k = len(self.classes_)
        for i in range(len(scores)):
            lib.svs_model_probabilities(self._model, s + i * rows, p + i * k)
        return proba

    # ---- raw rows

    def _row(self, x: Any, ts: Any) -> "np.ndarray[Any, Any]":
        """The features of one row: a dict by the model's schema, a sequence as it is."""
        if not isinstance(x, Mapping):
            return self._matrix([x])[0]  # type: ignore[no-any-return]
        err, length, out = Error(), ffi.new("int *"), ffi.new("const double **")
        with self._lock:  # a schema serves one thread at a time
            if self._schema is None:
                schema = lib.svs_schema_of_model(self._model, err)
                if schema == ffi.NULL:
                    raise failure(err)
                self._schema = ffi.gc(schema,
                                      lambda s: lib.svs_schema_free(ffi.new("svs_schema **", s)))
            schema = self._schema
            check(lib.svs_schema_begin(schema, err), err)
            for name, item in x.items():
                self._cell(schema, str(name).encode(), item, err)
            if ts is not None:
                lib.svs_schema_time(schema, _rows.seconds(ts))
            check(lib.svs_schema_end(schema, out, length, err), err)
            # The schema of a model gives all of its features.
            row = np.zeros(self.n_features_in_)
            row[:length[0]] = np.frombuffer(ffi.buffer(out[0], 8 * length[0]), float)
            return row

    def _cell(self, schema: Any, name: bytes, item: Any, err: Any) -> None:
        if isinstance(item, Mapping):  # an object inside a row: sensor.co2
            for inner, value in item.items():
                self._cell(schema, name + b"." + str(inner).encode(), value, err)
            return
        if item is None or type(item).__name__ in _rows.MISSING:
            check(lib.svs_schema_missing(schema, name, err), err)
        elif isinstance(item, str):
            check(lib.svs_schema_word(schema, name, item.encode(), err), err)
        else:
            try:
                number = float(item)
            except (TypeError, ValueError):
                raise errors.WrongTypeError("%s is a %s; a value is a number, a word or None"
                                            % (name.decode(), type(item).__name__)) from None
            check(lib.svs_schema_number(schema, name, number, err), err)

    def decision_function_one(self, x: Any, ts: Any = None) -> List[float]:
        """The scores of one row, as in a score event. ts: its time, which a model with a calendar
        needs.
        """
        scores = self._scores(self._row(x, ts).reshape(1, -1))
        return [float(score) for score in scores[0]]

    def predict_one(self, x: Any, ts: Any = None) -> Value:
        """The class of one row, or its number; x: a dict of numbers, words and None, or a sequence
        of features.
        """
        scores = self._scores(self._row(x, ts).reshape(1, -1))
        if self.task == "regress":
            return float(scores[0, 0])
        place = lib.svs_model_predict(self._model, ffi.from_buffer("double[]", scores))
        return self.classes_[place] if place >= 0 else None

    def predict_proba_one(self, x: Any, ts: Any = None) -> Dict[Value, float]:
        """Class to probability of one row; empty if the model has no probabilities."""
        scores = self._scores(self._row(x, ts).reshape(1, -1))
        proba = np.empty(max(1, len(self.classes_)))
        if not lib.svs_model_probabilities(self._model, ffi.from_buffer("double[]", scores),
                                           ffi.from_buffer("double[]", proba)):
            return {}
        return dict(zip(self.classes_, proba.tolist()))


def _numbers(item: Any) -> Any:
    """W, b and the like as the wire has them: packed, whatever nesting of lists a dict or JSON has.
    """
    return wire.msgpack.ExtType(wire.FLOAT64, np.asarray(item, "<f8").tobytes())


def _packed(event: Dict[str, Any]) -> Dict[str, Any]:
    """A dict of a model with its numbers packed as in an event."""
    try:
        event["W"] = _numbers(event["W"])
        if np.ndim(event["b"]) > 0:
            event["b"] = _numbers(event["b"])
        calibration = event.get("calibration")
        if isinstance(calibration, Mapping):
            calibration = dict(calibration)
            if np.ndim(calibration["b"]) > 0:
                calibration["b"] = _numbers(calibration["b"])
            if calibration.get("curve") is not None:
                calibration["curve"] = _numbers(calibration["curve"])
            event["calibration"] = calibration
    except (KeyError, TypeError, ValueError) as reason:
        raise errors.WrongTypeError("this is no model: %s" % (
            "it has no key %s" % reason if isinstance(reason, KeyError) else reason)) from None
    return event
