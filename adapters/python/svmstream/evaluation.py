"""Prequential evaluation: each row is predicted before it is learned, so every row is a test.

>>> import svmstream
>>> rows = [({"temp": float(i % 7)}, i % 7 > 3) for i in range(200)]
>>> result = svmstream.evaluate(rows, svmstream.ALSVM())
>>> result.figures["accuracy"] > 0.9
True
>>> print(result)  # the table that `svmstream eval` prints  # doctest: +ELLIPSIS
rows               200
refused            0
...

In a notebook, `result` alone shows the table and a plot.
"""
from __future__ import annotations

import inspect
import os
import time
from itertools import islice
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple

from . import _plot, errors
from ._measures import Measures, Point
from ._warning import warn

__all__ = ["Evaluation", "Point", "evaluate"]

REFUSALS_KEPT = 5
ALERTS_KEPT = 1000

Taken = Tuple[Any, Any, Optional[float], Any]  # label, prediction, surprise, alerts of a row
Predict = Callable[[Any, Any, Dict[str, Any]], Taken]


class Evaluation:
    """The result of `evaluate`. `str()` is the table; a notebook shows the table and the plot.

    rows     rows read, refused ones included
    seconds  duration
    table    the table that `svmstream eval` prints for the same rows; of models of other libraries,
             their figures
    figures  dict of all figures: of a svmstream learner those of its stream (`svmstream help
             protocol`, Event stats), else rows, labelled, unpredicted and accuracy, kappa, kappa_t,
             balanced_accuracy, accuracy_majority, accuracy_no_change or rmse, mae, rmse_mean,
             rmse_no_change
    curve    list of Point, at most 400 unless `every` was given
    alerts   list of (row, alert) in order, the last 1,000 of them
    refused  list of (row, sentence) of the first refused rows; `refusals` is their number

    >>> from svmstream import evaluate
    >>> class Same:
    ...     def __init__(self): self.last = None
    ...     def predict_one(self, x): return self.last
    ...     def learn_one(self, x, y): self.last = y
    >>> result = evaluate([({"a": 1}, "up"), ({"a": 2}, "up"), ({"a": 3}, "down")], Same())
    >>> round(result.figures["accuracy"], 3)
    0.333
    >>> result
    rows               3
    labelled           3
    unpredicted        1
    accuracy           0.3333
    ...
    """

    def __init__(
        self, run: "_Run", seconds: float, table: str, figures: Mapping[str, Any], name: str
    ) -> None:
        self.rows: int = run.rows
        self.seconds = seconds
        self.table = table
        self.figures: Dict[str, Any] = dict(figures)
        self.curve: List[Point] = run.measures.points()
        self.alerts: List[Tuple[int, Any]] = run.alerts[-ALERTS_KEPT:]
        self.refused: List[Tuple[int, str]] = run.refused
        self.refusals: int = run.refusals
        self._measure = "rmse" if run.measures.regress else "accuracy"
        self._name = name

    def __str__(self) -> str:
        return self.table.rstrip("\n")

    __repr__ = __str__

    def svg(self) -> str:
        """The plot as an SVG document: the quality over rows against both baselines, surprise, and
        alerts.

        >>> from svmstream import ALSVM, evaluate
        >>> plot = evaluate([([i % 5], i % 5 > 2) for i in range(50)], ALSVM()).svg()
        >>> plot[:4]
        '<svg'
        """
        title = "%s: %s over %s rows" % (self._name, self._measure, format(self.rows, ","))
        return _plot.svg(self.curve, self._dots(), self._measure, title)

    def _dots(self) -> List[_plot.Dot]:
        return [
            (row, str(getattr(alert, "severity", "") or ""), str(getattr(alert, "text", alert)))
            for row, alert in self.alerts
            if getattr(alert, "state", "open") == "open"
        ]

    def _repr_html_(self) -> str:
        return _plot.page(str(self), self.svg() if self.curve else None, self._dots())


def evaluate(
    stream: Iterable[Any],
    model: Any,
    *,
    limit: Optional[int] = None,
    every: Optional[int] = None,
    task: Optional[str] = None,
) -> Evaluation:
    """Predicts each row of a stream, then learns it, and measures the predictions.

    stream  iterable of (x, y), as River's data sets are, or of (x, y, more), as
            `svmstream.datasets.rows` yields them with times. `more` is a dict of the further
            arguments of `step` ("ts", "id", "w"). y None: the row is predicted and has no label.
            For arrays use zip(X, y)
    model   a learner of this package, which continues from what it has learned; or any object with
            `predict_one` and `learn_one`
    limit   at most this many rows
    every   rows from point to point of the curve; by default at most 400 points
    task    "classify" or "regress" of a model of another library that does not state it

    A row that the model refuses is counted and passed over, as in `svmstream eval`; a warning
    states the first one. Rows that lack memory, and any other error, end the evaluation with that
    exception.

    >>> import svmstream
    >>> X, y = [[0.0], [1.0]] * 50, ["low", "high"] * 50
    >>> result = svmstream.evaluate(zip(X, y), svmstream.ALSVM())
    >>> result.rows, result.refusals
    (100, 0)
    >>> result.figures["accuracy"] > 0.9
    True
    """
    if every is not None and every < 1:
        raise errors.InputError("every is %r; it is a number of rows from 1" % (every,))
    if task not in (None, "classify", "regress"):
        raise errors.InputError("task is %r; it is 'classify' or 'regress'" % (task,))
    if isinstance(model, type):
        raise errors.WrongTypeError(
            "model is the class %s; give an object: %s()" % (model.__name__, model.__name__)
        )
    if isinstance(stream, (str, bytes, os.PathLike)):
        raise errors.WrongTypeError(
            "stream is a %s; for the rows of a file give svmstream.datasets.rows(path, label=...)"
            % type(stream).__name__
        )
    own = hasattr(model, "step") and hasattr(model, "report")
    predict = _own(model) if own else _foreign(model)
    measures = Measures(_regresses(model, own, task), every)
    run = _Run(predict, measures)
    begun = time.perf_counter()
    for element in islice(stream, limit):
        run.take(element)
    seconds = time.perf_counter() - begun
    figures = dict(model.figures()) if own else measures.figures()
    table = str(model.report(seconds=seconds)) if own else _table(figures)
    if run.refusals:
        warn(
            "%d of %d rows were refused; the first, row %d: %s"
            % (run.refusals, run.rows, *run.refused[0])
        )
    if run.rows > run.refusals and not measures.labelled and hasattr(model, "predict_one"):
        warn(
            "none of %d rows has a label, so nothing was measured; of a file: "
            "svmstream.datasets.rows(path, label=\"NAME\")" % run.rows
        )
    return Evaluation(run, seconds, table, figures, type(model).__name__)


class _Run:
    """One pass over the rows."""

    def __init__(self, predict: Predict, measures: Measures) -> None:
        self.predict, self.measures = predict, measures
        self.rows = self.refusals = 0
        self.alerts: List[Tuple[int, Any]] = []
        self.refused: List[Tuple[int, str]] = []

    def take(self, element: Any) -> None:
        self.rows += 1
        x, y, more = _parts(element, self.rows)
        try:
            label, guess, surprise, alerts = self.predict(x, y, more)
        except (errors.InputError, errors.LimitError) as error:
            self.refusals += 1
            if len(self.refused) < REFUSALS_KEPT:
                self.refused.append((self.rows, str(error)))
            return
        self.measures.take(label, guess, surprise)
        for alert in alerts:
            self.alerts.append((self.rows, alert))
        if len(self.alerts) > 2 * ALERTS_KEPT:
            del self.alerts[:-ALERTS_KEPT]


def _parts(element: Any, row: int) -> Tuple[Any, Any, Dict[str, Any]]:
    try:
        x, y, *rest = element
    except (TypeError, ValueError):
        rest = [None, None]
    if len(rest) > 1 or (rest and not isinstance(rest[0], Mapping)):
        raise errors.WrongTypeError(
            "row %d of the stream is %.80r; it must be (x, y), or "
            "(x, y, dict of ts, id, w)" % (row, element)
        )
    return x, y, dict(rest[0]) if rest else {}


def _own(model: Any) -> Predict:
    def predict(x: Any, y: Any, more: Dict[str, Any]) -> Taken:
        step = model.step(x, y, **more)
        # A monitor learns no labels: its rows have none.
        return y if step.learned else None, step.y, step.surprise, step.alerts

    return predict


def _foreign(model: Any) -> Predict:
    if not all(callable(getattr(model, name, None)) for name in ("predict_one", "learn_one")):
        raise errors.WrongTypeError(
            "a %s has no predict_one and learn_one; evaluate(stream, model) takes "
            "learners of svmstream and of River" % type(model).__name__
        )
    weighted = "w" in inspect.signature(model.learn_one).parameters

    def predict(x: Any, y: Any, more: Dict[str, Any]) -> Taken:
        guess = model.predict_one(x)
        if y is not None:
            weight = {"w": more["w"]} if weighted and "w" in more else {}
            model.learn_one(x, y, **weight)
        return y, guess, None, ()

    return predict


def _regresses(model: Any, own: bool, task: Optional[str]) -> Optional[bool]:
    """By the task, or by the kind of the model; None: by the first label, a number with a
    fraction."""
    if task is None and own:
        task = getattr(model, "task", None)
    if task is not None:
        return task == "regress"
    steps = getattr(model, "steps", None)
    while isinstance(steps, Mapping) and steps:  # a pipeline of River
        model = list(steps.values())[-1]
        steps = getattr(model, "steps", None)
    kinds = {c.__name__ for c in type(model).__mro__}
    kinds.add(str(getattr(model, "_estimator_type", "")).title())
    return True if "Regressor" in kinds else False if "Classifier" in kinds else None


def _table(figures: Mapping[str, float]) -> str:
    lines = [
        "%-19s%s" % (name, value if isinstance(value, int) else "%.4f" % value)
        for name, value in figures.items()
    ]
    return "\n".join(lines) + "\n"
