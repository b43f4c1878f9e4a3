"""What scikit-learn and River users call of a learner that predicts: fit, predict, classes_ and the
others.
"""
from __future__ import annotations

import sys
from typing import Any, Dict, List, Optional, Tuple, TypeVar

import numpy as np

from . import _matrix, _rows, errors
from ._contract import Contract, available, available_value
from ._labels import column, plain, targets
from ._library import check, ffi, lib

E = TypeVar("E", bound="Estimator")


class Estimator(Contract):
    """A learner with labels."""

    __slots__ = ()

    # ---- learning

    def partial_fit(self: E, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> E:
        """Learns a block of rows in their order. Returns self.

        X: array (n, d) of numbers or DataFrame. y: n labels. classes: all classes that can occur;
            optional, at the first call; others are refused from then on. sample_weight: n weights,
            0 = the row is passed over. float64 and float32 in C order are read in place. Something
            wrong in any row: an exception, and nothing of X is learned.
        Ctrl-C ends a long block early: the rows before it are learned (`seen`).
        """
        m = _matrix.matrix(X, self.missing is not None)
        self._require(y)
        _matrix.warn_of_labels(X, y)
        with self._lock:
            before = self._declared
            if classes is not None:
                self._declare(classes)
            try:
                self._learn_many(m, y, sample_weight, None, None, True)
            except Exception:
                self._declared = before
                raise
        return self

    def fit(self: E, X: Any, y: Any, sample_weight: Any = None) -> E:
        """Forgets everything, then learns the rows in their order. Returns self. Arguments as of
        partial_fit.

        With a window only its newest rows count: ALSVM(window=0) is the solution of all rows.
        """
        m = _matrix.matrix(X, self.missing is not None)
        self._require(y)
        _matrix.warn_of_labels(X, y)
        new = type(self).__new__(type(self))
        vars(new).update(vars(self))
        new._open()
        new._learn_many(m, y, sample_weight, None, None, True)
        if not new._regress:
            new._extra = sorted_classes(new._labels.block(y, m.n).own())
        with self._lock:
            for name in new.STATE:
                setattr(self, name, getattr(new, name))
        return self

    def learn_many(
        self: E, X: Any, y: Any = None, *, w: Any = None, ids: Any = None, ts: Any = None
    ) -> E:
        """Learns a block of rows, usually a DataFrame: NaN, None and NA are missing values, strings
        are words, columns may appear and be left out (they count as 0). ids, ts: id and time of
        each row. Returns self.
        """
        m = _matrix.matrix(X, self.missing is not None)
        _matrix.warn_of_labels(X, y)
        self._learn_many(m, y, w, ids, ts, False)
        return self

    def _require(self, y: Any) -> None:
        if y is None:
            raise errors.BadLabelError(
                "%s requires y to be passed, but the target y is None" % type(self).__name__
            )

    def _declare(self, classes: Any) -> None:
        if self._regress:
            raise errors.BadLabelError("a regression has no classes: leave classes= out")
        if not isinstance(classes, (list, tuple, set, frozenset)):
            classes = np.asarray(classes).ravel().tolist()
        for label in classes:
            plain(label)
        given = sorted_classes(list(dict.fromkeys(classes)))
        if self._declared is not None and set(given) != set(self._declared):
            raise errors.BadLabelError(
                "`classes=%r` is not the same as on last call to partial_fit, was: %r"
                % (given, self._declared)
            )
        unknown = [c for c in self._labels.classes(self._handle) if c not in given]
        if unknown:
            raise errors.BadLabelError(
                "classes lacks the class %r that was learned before" % (unknown[0],)
            )
        self._declared = given

    # ---- prediction

    def predict_one(self, x: Any) -> Any:
        """The predicted class of one row, by the prices if there are any, or its number; None
        before the first one.
        """
        with self._lock:
            prediction = self._score(x).prediction
            return self._predicted(prediction) if self._fitted else None

    @available("classify")
    def predict_proba_one(self, x: Any) -> Dict[Any, float]:
        """{class: probability} of one row; empty before the first class."""
        with self._lock:
            prediction = self._score(x).prediction
            return self._proba(prediction) if self._fitted else {}

    @available("classify")
    def decision_function_one(self, x: Any) -> Dict[Any, float]:
        """{class: score} of one row: the larger, the more likely. Empty before the first class."""
        with self._lock:
            out = self._score(x).prediction
            if not self._fitted or out.scores == ffi.NULL:
                return {}
            scores = ffi.unpack(out.scores, out.rows)
            if out.rows == 1 and out.class_count == 2:
                scores = [-scores[0], scores[0]]
            return {self._class(i): s for i, s in enumerate(scores[: out.class_count])}

    @available("regress")
    def predict_interval_one(self, x: Any) -> Optional[Tuple[float, float]]:
        """(low, high): the interval that holds the number with the probability of the setting
        `interval` (0.9); None while it is not known.
        """
        with self._lock:
            out = self._score(x).prediction
            return (out.low, out.high) if out.ranged else None

    def predict(self, X: Any) -> Any:
        """n predictions for X (n, d): classes in their own type, or numbers. NotFittedError before
        the first row.
        """
        return self._predict(X, True)

    def _predict(self, X: Any, strict: bool) -> Any:
        m = self._to_score(X)
        with self._lock:
            if self._regress:
                values = self._score_many(m, {"value": ""}, strict)["value"]
                self._complete(np.isnan(values))
                return values
            index = self._score_many(m, {"predicted": ""}, strict)["predicted"]
            classes, order = self._sorted()
            self._complete(index < 0)
            place = np.empty(max(order) + 1, np.intp)
            for position, i in enumerate(order):
                if i >= 0:
                    place[i] = position
            return classes[place[index]]

    @available("classify")
    def predict_proba(self, X: Any) -> Any:
        """Probabilities (n, classes) for X (n, d), columns as in classes_.

        They are calibrated by the rows so far. predict decides by the score (or by prices), so for
        a row near the border the most probable class can be another, as with SVC(probability=True).
        """
        return self._predict_proba(X, True)

    def _predict_proba(self, X: Any, strict: bool) -> Any:
        m = self._to_score(X)
        with self._lock:
            found = self._score_many(m, {"proba": "classes", "predicted": ""}, strict)
            self._complete(found["predicted"] < 0)
            classes, order = self._sorted()
            proba = found["proba"] if found["proba"].shape[1] > 1 else np.ones((m.n, 1))
            if np.isnan(proba).any():
                raise errors.UnavailableError(
                    "no probabilities are known yet: learn more rows with labels"
                )
            result = np.zeros((m.n, len(classes)))
            for position, i in enumerate(order):
                if i >= 0:
                    result[:, position] = proba[:, i]
            return result

    @available("classify")
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of predict_proba (n, classes)."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @available("classify")
    def decision_function(self, X: Any) -> Any:
        """Scores of X (n, d): with two classes (n,), above 0 for classes_[1]; with more (n,
        classes).
        """
        m = self._to_score(X)
        with self._lock:
            found = self._score_many(m, {"scores": "rows", "predicted": ""}, True)
            self._complete(found["predicted"] < 0)
            classes, order = self._sorted()
            scores = found["scores"]
            count = sum(i >= 0 for i in order)
            if count == 1:  # one class so far: there is nothing to decide
                scores = np.where(found["predicted"][:, None] == 0, -1.0, 1.0)
            if len(classes) <= 2:
                return -scores[:, 0] if order[-1] == 0 else scores[:, 0]
            result = np.full((m.n, len(classes)), -1.0)
            for position, i in enumerate(order):
                if i >= 0:
                    result[:, position] = (
                        scores[:, i]
                        if scores.shape[1] > 1
                        else scores[:, 0]
                        if i == 1
                        else -scores[:, 0]
                    )
            return result

    @available("regress")
    def predict_interval(self, X: Any) -> Any:
        """Intervals (n, 2) of low and high for X (n, d), as of predict_interval_one; nan while they
        are not known.
        """
        m = self._to_score(X)
        found = self._score_many(m, {"low": "", "high": ""}, True)
        return np.column_stack([found["low"], found["high"]])

    def predict_many(self, X: Any) -> Any:
        """predict for a block whose columns may differ from those learned; a Series if X is a
        pandas DataFrame.
        """
        return like(X, self._predict(X, False))

    @available("classify")
    def predict_proba_many(self, X: Any) -> Any:
        """predict_proba for a block whose columns may differ; a DataFrame with a column for each
        class if X is one.
        """
        return like(X, self._predict_proba(X, False), self.classes_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of predict(X), or R2 of a regression. X (n, d), y (n), sample_weight (n)."""
        predicted = self.predict(X)
        truth = column(y, len(predicted))
        w = _rows.weights(sample_weight, len(predicted))
        if not self._regress:
            # As Python's objects: an array of numbers and strings would be one of strings.
            labels = truth.tolist() if isinstance(truth, np.ndarray) else truth
            right = [a == b for a, b in zip(predicted.tolist(), labels)]
            return float(np.average(np.array(right), weights=w))
        truth = targets(truth, len(predicted))
        spread = np.average((truth - np.average(truth, weights=w)) ** 2, weights=w)
        error = np.average((truth - predicted) ** 2, weights=w)
        return float(1 - error / spread) if spread else (1.0 if error == 0 else 0.0)

    def _to_score(self, X: Any) -> _matrix.Matrix:
        if not self._fitted:
            raise errors.not_fitted(
                "This %s instance is not fitted yet: call fit, partial_fit or learn_one first"
                % type(self).__name__
            )
        return _matrix.matrix(X, self.missing is not None)

    def _complete(self, lacks: Any) -> None:
        """Raises if a row has no prediction."""
        if lacks.any():
            row = int(np.nonzero(lacks)[0][0])
            raise errors.MissingValueError(
                "row %d has no prediction: %s"
                % (
                    row,
                    (
                        "it lacks a value and missing=\"drop\""
                        if self.setting("missing") == "drop"
                        else "no row with a weight above 0 was learned"
                    ),
                )
            )

    # ---- attributes

    def _sorted(self) -> Tuple[Any, List[int]]:
        """(classes_, for each its index in the library or -1). The caller holds the lock."""
        count = lib.svs_stream_class_count(self._handle)
        more = [*(self._declared or ()), *self._extra]
        key = (count, more)
        if self._view is None or self._view[0] != key:
            if count:
                self._class(count - 1)
            known = self._named[:count]
            classes = sorted_classes(list(dict.fromkeys(known + more)))
            index = {c: i for i, c in enumerate(known)}
            self._view = (
                key,
                as_array(classes, self._labels.of_objects),
                [index.get(c, -1) for c in classes],
            )
        return self._view[1], self._view[2]

    @available_value("classify")
    def classes_(self) -> Any:
        """The classes, sorted (n_classes)."""
        self._check_fitted("classes_")
        with self._lock:
            return self._sorted()[0]

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        self._check_fitted("n_features_in_")
        with self._lock:
            return self._width()

    @property
    def feature_names_in_(self) -> Any:
        """Names of the columns (n_features_in_), if they have names."""
        self._check_fitted("feature_names_in_")
        names = self.columns
        if not names:
            raise AttributeError("the columns have no names")
        return np.array(names, dtype=object)

    def _check_fitted(self, name: str) -> None:
        if not self._fitted:
            raise AttributeError(
                "%s has no %s before it has learned a row with a label"
                % (type(self).__name__, name)
            )

    # ---- the linear model

    def _linear(self) -> Tuple[Any, Any]:
        """(W, b) in raw units, rows in the library's order."""
        with self._lock:
            model = ffi.new("svs_model *")
            check(lib.svs_stream_model(self._handle, ffi.NULL, model, self._err), self._err)
            W = np.frombuffer(ffi.buffer(model.W, 8 * model.rows * model.d), np.float64).reshape(
                model.rows, model.d
            )
            return W.copy(), np.frombuffer(ffi.buffer(model.b, 8 * model.rows), np.float64).copy()


def sorted_classes(classes: List[Any]) -> List[Any]:
    """Classes in ascending order, numbers before strings."""
    return sorted(classes, key=lambda c: (isinstance(c, str), c))


def as_array(classes: List[Any], of_objects: bool) -> Any:
    """Classes as an array in their own type; of objects if they are of several."""
    if of_objects or len({isinstance(c, str) for c in classes}) > 1:
        result = np.empty(len(classes), object)
        result[:] = classes
        return result
    return np.array(classes)


def like(X: Any, values: Any, columns: Any = None) -> Any:
    """Values as a Series or DataFrame with the index of X, if X is a DataFrame of pandas."""
    pandas: Any = sys.modules.get("pandas")
    if pandas is None or not isinstance(X, pandas.DataFrame):
        return values
    if columns is None:
        return pandas.Series(values, index=X.index)
    return pandas.DataFrame(values, index=X.index, columns=list(columns))
