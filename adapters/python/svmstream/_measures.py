"""Prequential measures in plain Python: for the curve of an evaluation, and for models of other
libraries.

The trivial baselines are those of the program: the most frequent class (or the mean) so far, and
the label of the row before.
"""
from __future__ import annotations

import math
from collections import Counter
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

POINTS_MAX = 400


class Point(NamedTuple):
    """One point of the curve: figures of the rows since the point before.

    row        number of rows so far
    model      share of right predictions, or the rmse
    frequent   the same of "always the most frequent class", or the mean, so far
    no_change  the same of "the same as before"
    surprise   largest surprise, -log10 of a p-value; None without novelty
    NaN: no labelled row.

    >>> from svmstream.evaluation import Point
    >>> Point(100, 0.9, 0.6, 0.7, None).model
    0.9
    """

    row: int
    model: float
    frequent: float
    no_change: float
    surprise: Optional[float]


class Sums:
    """Mistakes over some rows, of the model and of both baselines; for a regression, squares."""

    __slots__ = ("rows", "counted", "model", "frequent", "no_change", "surprise")

    def __init__(self) -> None:
        self.rows = self.counted = 0
        self.model = self.frequent = self.no_change = 0.0
        self.surprise: Optional[float] = None

    def add(self, other: "Sums") -> None:
        for name in ("rows", "counted", "model", "frequent", "no_change"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.surprised(other.surprise)

    def surprised(self, value: Optional[float]) -> None:
        if value is None or value != value:
            return
        if self.surprise is None or value > self.surprise:
            self.surprise = value


class Measures:
    """Takes each prediction and its label in order; memory does not grow with the rows."""

    def __init__(self, regress: Optional[bool], every: Optional[int]) -> None:
        self.regress = regress
        self.width = every or 1  # rows of a bucket; without `every` it doubles as rows arrive
        self.fixed = every is not None
        self.now = Sums()
        self.buckets: List[Sums] = []
        self.labels: Counter[Any] = Counter()
        self.predicted: Counter[Any] = Counter()
        self.right: Counter[Any] = Counter()
        self.last: Any = None
        self.sum_y = self.sum_absolute = 0.0
        self.labelled = self.unpredicted = 0

    def take(self, y: Any, guess: Any, surprise: Optional[float]) -> None:
        """One row: its label (None: none), the prediction (None: none yet) and its surprise."""
        if self.regress is None and y is not None:
            self.regress = isinstance(y, float) and not y.is_integer()
        now = self.now
        now.rows += 1
        now.surprised(surprise)
        if y is not None:
            (self._target if self.regress else self._class)(now, y, guess)
            now.counted += 1
            self.labelled += 1
            self.unpredicted += guess is None
            self.last = y
        if now.rows >= self.width:
            self._close()

    def _class(self, now: Sums, y: Any, guess: Any) -> None:
        frequent = self.labels.most_common(1)[0][0] if self.labels else None
        now.model += guess != y
        now.frequent += frequent != y
        now.no_change += self.last != y
        self.predicted[guess] += 1
        self.right[y] += guess == y
        self.labels[y] += 1

    def _target(self, now: Sums, y: Any, guess: Any) -> None:
        y = float(y)
        now.model += (y - float(guess or 0.0)) ** 2
        now.frequent += (y - (self.sum_y / self.labelled if self.labelled else 0.0)) ** 2
        now.no_change += (y - float(self.last or 0.0)) ** 2
        self.sum_absolute += abs(y - float(guess or 0.0))
        self.sum_y += y

    def _close(self) -> None:
        self.buckets.append(self.now)
        self.now = Sums()
        if len(self.buckets) < POINTS_MAX:
            return
        for i in range(0, POINTS_MAX, 2):  # each two become one
            self.buckets[i].add(self.buckets[i + 1])
        del self.buckets[1::2]
        self.width *= 2

    def points(self) -> List[Point]:
        found, row = [], 0
        for bucket in self.buckets + ([self.now] if self.now.rows else []):
            row += bucket.rows
            found.append(Point(row, *self._figures(bucket), bucket.surprise))
        return found

    def _figures(self, part: Sums) -> Tuple[float, float, float]:
        model, frequent, no_change = (
            self._figure(mistakes, part.counted)
            for mistakes in (part.model, part.frequent, part.no_change)
        )
        return model, frequent, no_change

    def _figure(self, mistakes: float, count: int) -> float:
        if not count:
            return math.nan
        return math.sqrt(mistakes / count) if self.regress else 1.0 - mistakes / count

    def figures(self) -> Dict[str, float]:
        """What can be computed of any model, under the names of the program's figures where it has
        them."""
        t, n = Sums(), self.labelled
        for part in (*self.buckets, self.now):
            t.add(part)
        head: Dict[str, float] = {"rows": t.rows, "labelled": n, "unpredicted": self.unpredicted}
        model, frequent, no_change = self._figures(t)
        if self.regress:
            mean = self.sum_absolute / n if n else math.nan
            return dict(head, rmse=model, mae=mean, rmse_mean=frequent, rmse_no_change=no_change)
        recalls = [self.right[c] / count for c, count in self.labels.items()]
        agreed = sum(self.predicted[c] * count for c, count in self.labels.items())
        chance = agreed / n**2 if n else math.nan
        # kappa excludes agreement by chance, which is certain where all labels are equal.
        kappa = (model - chance) / (1 - chance) if chance < 1 else 0.0
        return dict(
            head,
            accuracy=model,
            kappa=kappa if n else math.nan,
            kappa_t=(model - no_change) / (1 - no_change) if no_change < 1 else math.nan,
            balanced_accuracy=sum(recalls) / len(recalls) if recalls else math.nan,
            accuracy_majority=frequent,
            accuracy_no_change=no_change,
        )
