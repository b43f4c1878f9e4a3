"""Novelty, scores of rows unlike those before, and Monitor, which makes alerts of them within a
budget.
"""
from __future__ import annotations

import operator
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Tuple, TypeVar, Union

import numpy as np

from . import _matrix, errors
from ._blocks import Blocks
from ._library import c_text, check, ffi, lib
from ._results import Alert, Evidence, Step
from .learners import Names, listed

__all__ = ["Alert", "Evidence", "Monitor", "Novelty", "Step"]

N = TypeVar("N", bound="Unlabelled")


class Unlabelled(Blocks):
    """What Novelty and Monitor share: rows without labels."""

    __slots__ = ()
    _maker = staticmethod(lib.svs_monitor_new)
    _takes_labels = False

    def score_one(self, x: Any) -> float:
        """Novelty of a row, 1 - membership: the higher, the more novel; about 0 at the border of
        what is normal, towards 1 far away, below 0 well inside; 0.0 while nothing is known. Learns
        nothing.
        """
        with self._lock:
            evidence = self._score(x).evidence
            return (
                float(evidence.novelty)
                if evidence.known and evidence.novelty == evidence.novelty
                else 0.0
            )

    def p_one(self, x: Any) -> float:
        """Conformal p-value of a row: the probability that a normal row is at least as novel; 1.0
        while nothing is known. Learns nothing.
        """
        with self._lock:
            evidence = self._score(x).evidence
            return float(evidence.p) if evidence.known and evidence.p == evidence.p else 1.0

    def learn_many(
        self: N, X: Any, y: Any = None, *, w: Any = None, ids: Any = None, ts: Any = None
    ) -> N:
        """Learns rows in their order: X (n, d), an array or a DataFrame; y is ignored. Returns
        self.
        """
        self._learn_many(_matrix.matrix(X, self.missing is not None), None, w, ids, ts, False)
        return self

    def score_many(self, X: Any) -> Any:
        """score_one of each row: novelty (n) of X (n, d). Learns nothing."""
        return self._many(X, "novelty", 0.0)

    def p_many(self, X: Any) -> Any:
        """p_one of each row: conformal p-values (n) of X (n, d). Learns nothing."""
        return self._many(X, "p", 1.0)

    def _many(self, X: Any, name: str, unknown: float) -> Any:
        m = _matrix.matrix(X, self.missing is not None)
        values = self._score_many(m, {name: ""}, False)[name]
        return np.where(np.isnan(values), unknown, values)

    @property
    def _supervised(self) -> bool:  # River's
        return False

    @property
    def _tags(self) -> Any:
        return set()


class Novelty(Unlabelled):
    """How unlike the rows before is a row? A one-class model of the stream with conformal p-values.

    p is the share of false alarms that a threshold at it makes: of normal rows, 1 in 1,000 has p <=
    .001. Rows that look novel are not learned, unless they last (setting novelty.learn). The first
    100 rows have no p.

    It has River's habits of an anomaly detector. It is no outlier detector of scikit-learn: that
    one needs a threshold for a fraction of the training set, which a stream does not have; compare
    p with the rate of alarms that you accept.

    Parameters
        window: rows after which a support vector is removed, 0 = never
        gamma: width of the kernel: "auto" (several together), "median", "scale" or a number
        trim: fraction of the least normal rows that is not learned, 0 to 0.5
        missing, categories, seed, settings: as of svmstream.Auto

    >>> from svmstream import Novelty
    >>> model = Novelty()
    >>> for i in range(400):
    ...     model = model.learn_one({"a": i * 7 % 13, "b": i * 5 % 11})
    >>> model.score_one({"a": 500, "b": -300}) > model.score_one({"a": 6, "b": 5})
    True
    >>> model.p_one({"a": 500, "b": -300}) < .05
    True
    """

    __slots__ = ()
    _kind = "Novelty"

    def __init__(
        self,
        *,
        window: int = 10_000,
        gamma: Union[str, float] = "auto",
        trim: float = 0.2,
        missing: Optional[str] = None,
        categories: Names = (),
        seed: int = 1,
        settings: Optional[Mapping[str, Any]] = None,
    ) -> None:
        self.window = window
        self.gamma = gamma
        self.trim = trim
        self.missing = missing
        self.categories = categories
        self.seed = seed
        self.settings = settings
        self._open()

    def _settings(self) -> Dict[str, Any]:
        return {
            "novelty.window": self.window,
            "novelty.gamma": self.gamma,
            "novelty.trim": self.trim,
            "missing": "mean" if self.missing is None else self.missing,
            "alert.rules": "none",
            "categories": listed(self.categories, "categories"),
            "seed": self.seed,
        }


def limit_list(given: Any) -> Optional[str]:
    """limits as the setting: {"temp": (0, 90), "flow": (None, 12)} -> temp:0..90,flow:..12."""
    if given is None or isinstance(given, str):
        return given
    if not isinstance(given, Mapping):
        raise errors.SettingError(
            "limits is a dict {column: (low, high)}, not %s" % type(given).__name__
        )
    parts = []
    for name, pair in given.items():
        if (
            not isinstance(pair, (tuple, list))
            or len(pair) != 2
            or all(side is None for side in pair)
        ):
            raise errors.SettingError(
                "limits: %r of %s is not (low, high), of which one may be None" % (pair, name)
            )
        if "," in str(name):
            raise errors.SettingError(
                "limits: the column %r contains a comma, which separates columns" % name
            )
        try:
            low, high = ("" if side is None else repr(float(side)) for side in pair)
        except (TypeError, ValueError) as error:
            raise errors.SettingError("limits: %r of %s are not numbers" % (pair, name)) from error
        parts.append("%s:%s..%s" % (name, low, high))
    return ",".join(parts) or None


class Monitor(Unlabelled):
    """Watches sensors: rows in, evidence and alerts out, within a budget of alerts. `svmstream help
    alerts`.

    An alert opens for a row or a lasting change unlike the past (kind "novelty"), or by a plain
    rule (kind "rule"). Give the time of each row as ts=, in ascending order; with `interval` a row
    without ts counts as that many seconds after the one before; without both it counts as arriving
    now.

    Parameters
        budget: rate of novelty alerts while nothing is wrong: "1/day", "2/hour", "1/week", or
            "none"
        rules: of "beyond", "stuck", "absent", "rate"; () = none
        limits: {column: (low, high)}, of which one may be None: values outside open an alert
        context: columns that determine what is normal for the others and are not watched themselves
        interval: seconds between rows without ts
        on_alert: called with each svmstream.novelty.Alert, after its row was learned; an archive
            does not keep it
        missing, categories, seed, settings: as of svmstream.Auto

    >>> from svmstream import Monitor
    >>> monitor = Monitor(limits={"temp": (0, 90)}, interval=60)
    >>> for i in range(50):
    ...     step = monitor.step({"temp": 60 + i % 7, "load": i % 5})
    >>> for alert in monitor.step({"temp": 95, "load": 3}).alerts:
    ...     print(alert.kind, alert.rule, alert.state, alert.sensors)
    rule limits open ('temp',)
    """

    __slots__ = ()
    _kind = "Monitor"

    def __init__(
        self,
        *,
        budget: str = "1/day",
        rules: Names = ("beyond", "stuck", "absent"),
        limits: Optional[Mapping[str, Tuple[Optional[float], Optional[float]]]] = None,
        context: Names = (),
        interval: Optional[float] = None,
        missing: Optional[str] = None,
        categories: Names = (),
        seed: int = 1,
        on_alert: Optional[Callable[[Alert], Any]] = None,
        settings: Optional[Mapping[str, Any]] = None,
    ) -> None:
        self.budget = budget
        self.rules = rules
        self.limits = limits
        self.context = context
        self.interval = interval
        self.missing = missing
        self.categories = categories
        self.seed = seed
        self.on_alert = on_alert
        self.settings = settings
        self._open()

    def _settings(self) -> Dict[str, Any]:
        if self.on_alert is not None and not callable(self.on_alert):
            raise errors.SettingError(
                "on_alert is %r; it is a function that takes an alert, or None" % (self.on_alert,)
            )
        return {
            "alert.budget": self.budget,
            "alert.rules": listed(self.rules, "rules") or "none",
            "limits": limit_list(self.limits),
            "context": listed(self.context, "context"),
            "alert.interval": self.interval,
            "missing": "mean" if self.missing is None else self.missing,
            "categories": listed(self.categories, "categories"),
            "seed": self.seed,
        }

    def _saved_params(self) -> Dict[str, Any]:
        return {name: value for name, value in self.get_params().items() if name != "on_alert"}

    @classmethod
    def _defaults(cls) -> Dict[str, Any]:
        return {"on_alert": None}

    def _notify(self, alerts: Iterable[Alert]) -> None:
        call = self.on_alert
        if call is not None:
            for alert in alerts:
                call(alert)

    def verdict(self, alert: Union[int, Alert], confirmed: bool, by: Optional[str] = None) -> None:
        """Gives a verdict on a novelty alert: it is confirmed, or nothing was wrong, in which case
        its rows are learned as normal.

        alert: an Alert, or its number `alert`. by: name of the person. UnknownIdError: no such alert.
        """
        try:
            number = alert.alert if isinstance(alert, Alert) else operator.index(alert)
        except TypeError as error:
            raise errors.WrongTypeError(
                "a verdict is on an Alert or its number, not on a %s" % type(alert).__name__
            ) from error
        if not 0 <= number < 2**63:
            raise errors.UnknownIdError("there is no alert %d" % number)
        name = ffi.NULL if by is None else c_text(str(by), "the name by=")
        with self._lock:
            check(
                lib.svs_stream_verdict(
                    self._handle, number, ffi.NULL, bool(confirmed), name, self._err
                ),
                self._err,
            )
            found = self._collect()
        self._notify(found)
