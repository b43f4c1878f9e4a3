"""What scikit-learn and River read of a learner itself: its kind, its tags, its fitted state.

Neither is imported. `available` hides methods that the task does not have, as scikit-learn expects
of a regressor."""
from __future__ import annotations

import functools
import sys
from types import MethodType
from typing import Any, Callable, Dict

from ._blocks import Blocks


class available:
    """A method of one task only: elsewhere it does not exist."""

    _get = False

    def __init__(self, task: str) -> None:
        self._task = task

    def __call__(self, function: Callable[..., Any]) -> Any:
        self._function = function
        functools.update_wrapper(self, function)
        return self

    def __get__(self, obj: Any, owner: Any = None) -> Any:
        if obj is None:
            return self if self._get else self._function
        if obj.task != self._task:
            raise AttributeError(
                "%s has no %s with task=%r"
                % (type(obj).__name__, self._function.__name__, obj.task)
            )
        return self._function(obj) if self._get else MethodType(self._function, obj)


class available_value(available):
    """An attribute of one task only. With __set__, help() lists it as one, and not as a method."""

    _get = True

    def __set__(self, obj: Any, value: Any) -> None:
        raise AttributeError("%s cannot be set" % self._function.__name__)


class Contract(Blocks):
    """Kind and tags of a learner with labels."""

    __slots__ = ()
    _order: str  # why the order of the rows counts
    task: str

    def __sklearn_is_fitted__(self) -> bool:
        return self._fitted

    @property
    def _estimator_type(self) -> str:
        return "regressor" if self.task == "regress" else "classifier"

    def _expected_failures(self) -> Dict[str, str]:
        """Checks of scikit-learn that cannot hold for every parameter, and why."""
        found = {}
        if self.task == "classify":
            found["check_sample_weights_invariance"] = self._order
            if self._changed_params():
                found["check_classifiers_train"] = (
                    "predict decides by the score or by prices: near the border the most probable "
                    "class can be another, as with SVC(probability=True)"
                )
        if self.missing in ("carry", "drop"):
            found["check_estimators_nan_inf"] = "NaN is a missing value, and learned as such"
        return found

    @property
    def _takes_nan(self) -> bool:
        return self.missing in ("mean", "zero")  # in every row, also in the first

    def _more_tags(self) -> Dict[str, Any]:
        return {
            "requires_y": True,
            "allow_nan": self._takes_nan,
            "X_types": ["2darray"],
            "_xfail_checks": self._expected_failures(),
        }

    def __sklearn_tags__(
        self,
    ) -> Any:  # of scikit-learn from 1.6 on, which has imported its part by then
        utils: Any = sys.modules["sklearn.utils"]
        regress = self.task == "regress"
        return utils.Tags(
            estimator_type=self._estimator_type,
            target_tags=utils.TargetTags(required=True),
            classifier_tags=None if regress else utils.ClassifierTags(),
            regressor_tags=utils.RegressorTags() if regress else None,
            input_tags=utils.InputTags(allow_nan=self._takes_nan),
        )

    # River's properties
    @property
    def _supervised(self) -> bool:
        return True

    @property
    def _multiclass(self) -> bool:
        return self.task == "classify"

    @property
    def _tags(self) -> Any:
        return set()
