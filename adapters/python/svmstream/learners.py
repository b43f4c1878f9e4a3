"""Auto, a learner without knobs, and ALSVM, one exact linear model: classes or numbers, row by row
or by blocks.
"""
from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence, Union

from . import errors
from ._estimator import Estimator
from ._labels import plain
from ._library import lib, setting_text

__all__ = ["ALSVM", "Auto"]

Names = Union[str, Sequence[str]]


def listed(names: Optional[Names], parameter: str) -> Optional[str]:
    """Names of columns as a setting; None without names."""
    if names is None or isinstance(names, str):
        return names or None
    given = [str(name) for name in names]
    wrong = next((name for name in given if "," in name), None)
    if wrong is not None:
        raise errors.SettingError(
            "%s: the name %r contains a comma, which separates names" % (parameter, wrong)
        )
    return ",".join(given) or None


def _class_text(label: Any, parameter: str) -> str:
    text = str(plain(label))
    if any(sign in text for sign in ",=>"):
        raise errors.SettingError(
            "%s: the class %r contains one of , = > and cannot be named there" % (parameter, text)
        )
    return text


def _number_text(value: Any, parameter: str) -> str:
    try:
        return repr(float(value))
    except (TypeError, ValueError) as error:
        raise errors.SettingError("%s: %r is no number" % (parameter, value)) from error


def class_weights(given: Any) -> Optional[str]:
    """class_weight as the setting class.weight."""
    if given is None or isinstance(given, str):
        return given
    if not isinstance(given, Mapping):
        raise errors.SettingError(
            "class_weight is \"balanced\" or a dict {class: weight}, not %s"
            % type(given).__name__
        )
    return (
        ",".join(
            "%s=%s" % (_class_text(label, "class_weight"), _number_text(weight, "class_weight"))
            for label, weight in given.items()
        )
        or None
    )


def price_list(given: Any) -> Optional[str]:
    """prices as the setting decision.cost: {class: price of missing it} or {(truth, decision):
    price}.
    """
    if given is None or isinstance(given, str):
        return given
    if not isinstance(given, Mapping):
        raise errors.SettingError(
            "prices is a dict {class: price} or {(truth, decision): price}, not %s"
            % type(given).__name__
        )
    parts = []
    for key, price in given.items():
        names = key if isinstance(key, tuple) else (key,)
        if len(names) > 2:
            raise errors.SettingError(
                "prices: %r is neither a class nor (truth, decision)" % (key,)
            )
        parts.append(
            "%s=%s"
            % (
                ">".join(_class_text(name, "prices") for name in names),
                _number_text(price, "prices"),
            )
        )
    return ",".join(parts) or None


def common(task: Any, missing: Any, categories: Any, seed: Any) -> Dict[str, Any]:
    """The settings that all learners have."""
    return {
        "task": task,
        "missing": "mean" if missing is None else missing,
        "categories": listed(categories, "categories"),
        "seed": setting_text("seed", seed),
    }


# What `svmstream eval` has besides a learner, left out.
BARE = {"novelty": "none", "alert.rules": "none", "refit": "none", "threads": 1}


class Auto(Estimator):
    """A bank of learners, weighted by what each has predicted so far. There is nothing to set.

    It learns classes (task="classify") or numbers ("regress") from rows of numbers and words, in
    the order in which they arrive, and follows changes. About 10 microseconds a row of 8 columns in
    one thread; `svmstream help auto` says what is inside. The first row decides the order of the
    columns; predictions depend on it slightly, later orders do not matter.

    Parameters
        task: "classify" or "regress"
        missing: what happens to missing values, NaN included: "mean", "carry", "zero", "drop" or
            "refuse". None: the column's mean takes the place of None in a dict and of NaN in a
            DataFrame, and NaN in arrays and dicts is refused
        categories: columns whose values are words even where they look like numbers
        prices: {class: price of missing it} or {(truth, decision): price}; predictions then have
            the least expected price
        max_classes: limit of classes, 2 to 4096
        labels_ttl: seconds that a row with an id waits for its label
        seed: of the random numbers
        settings: a dict of any other setting of `svmstream help settings`

    Parameters are checked at once. A learner follows River (learn_one, predict_one, learn_many ...)
    and scikit-learn (partial_fit, fit, predict, score, clone ...). It can be copied, pickled and
    saved, and used from several threads.

    >>> from svmstream import Auto
    >>> model = Auto()
    >>> for i in range(100):
    ...     y = "warm" if i % 10 > 4 else "cold"
    ...     model = model.learn_one({"temp": i % 10, "place": "hall"}, y)
    >>> model.predict_one({"temp": 8, "place": "hall"})
    'warm'
    """

    __slots__ = ()
    _kind = "Auto"
    _order = "an online learner: the order of the rows counts, which this check shuffles"
    _worker = True
    _maker = staticmethod(lib.svs_auto_new)

    def __init__(
        self,
        *,
        task: str = "classify",
        missing: Optional[str] = None,
        categories: Names = (),
        prices: Optional[Mapping[Any, float]] = None,
        max_classes: int = 64,
        labels_ttl: float = 3600.0,
        seed: int = 1,
        settings: Optional[Mapping[str, Any]] = None,
    ) -> None:
        self.task = task
        self.missing = missing
        self.categories = categories
        self.prices = prices
        self.max_classes = max_classes
        self.labels_ttl = labels_ttl
        self.seed = seed
        self.settings = settings
        self._open()

    def _settings(self) -> Dict[str, Any]:
        return {
            **common(self.task, self.missing, self.categories, self.seed),
            "decision.cost": price_list(self.prices),
            "max.classes": self.max_classes,
            "labels.ttl": self.labels_ttl,
        }

    @property
    def _unit_test_skips(self) -> Any:  # River's checks that do not apply
        return {"check_shuffle_features_no_impact"}


class ALSVM(Estimator):
    """One exact linear model of a sliding window (adaptable linear SVM, least squares).

    After every row it equals a fresh solution of the rows that it holds: each row is added, and
    those that leave the window are removed, by exact steps. 2 microseconds a row of 8 columns.

    Parameters
        task: "classify" or "regress"
        C: penalty of the squared errors, above 0
        window: rows that the model is computed from, 0 = all, nothing is forgotten
        window_seconds: longest time that a row is held, 0 = no limit
        forgetting: factor by which the weight of a row falls with every later one, 0.001 to 1
        scale: "standard" (features scaled inside to mean 0 and deviation 1) or "none"
        class_weight: None, "balanced" or {class: weight}
        falsvm: learn only rows that the model gets wrong
        missing, categories, prices, labels_ttl, seed, settings: as of Auto

    coef_ and intercept_ are in the units of the rows.

    >>> from svmstream import ALSVM
    >>> model = ALSVM(window=500)
    >>> for i in range(40):
    ...     model = model.learn_one({"x": i % 8, "z": -i % 3}, y=i % 8 > 3, id=i)
    >>> model.predict_one({"x": 7, "z": 1})
    True
    >>> model.forget(3)
    1
    """

    __slots__ = ()
    _kind = "ALSVM"
    _order = "probabilities are calibrated by the rows in their order, which this check shuffles"

    def __init__(
        self,
        *,
        task: str = "classify",
        C: float = 1.0,
        window: int = 1000,
        window_seconds: float = 0.0,
        forgetting: float = 1.0,
        scale: str = "standard",
        class_weight: Any = None,
        falsvm: bool = False,
        missing: Optional[str] = None,
        categories: Names = (),
        prices: Optional[Mapping[Any, float]] = None,
        labels_ttl: float = 3600.0,
        seed: int = 1,
        settings: Optional[Mapping[str, Any]] = None,
    ) -> None:
        self.task = task
        self.C = C
        self.window = window
        self.window_seconds = window_seconds
        self.forgetting = forgetting
        self.scale = scale
        self.class_weight = class_weight
        self.falsvm = falsvm
        self.missing = missing
        self.categories = categories
        self.prices = prices
        self.labels_ttl = labels_ttl
        self.seed = seed
        self.settings = settings
        self._open()

    def _settings(self) -> Dict[str, Any]:
        return {
            **common(self.task, self.missing, self.categories, self.seed),
            **BARE,
            "method": "falsvm" if self.falsvm else "alsvm",
            "C": self.C,
            "window": self.window,
            "window.seconds": self.window_seconds,
            "forget": self.forgetting,
            "scale": self.scale,
            "class.weight": class_weights(self.class_weight),
            "decision.cost": price_list(self.prices),
            "labels.ttl": self.labels_ttl,
        }

    @property
    def coef_(self) -> Any:
        """Weights (1, d) for two classes (above 0: classes_[1]), (n_classes, d) for more; (d,) of a
        regression.
        """
        return self._in_order(self._linear()[0])

    @property
    def intercept_(self) -> Any:
        """Offsets (1,), (n_classes,), or one number of a regression."""
        return self._in_order(self._linear()[1])

    def _in_order(self, rows: Any) -> Any:
        self._check_fitted("coef_")
        if self._regress:
            return rows[0]
        with self._lock:
            order = self._sorted()[1]
        if len(rows) == 1:
            return -rows if order[-1] == 0 and len(order) == 2 else rows
        return rows[[i for i in order if i >= 0]]
