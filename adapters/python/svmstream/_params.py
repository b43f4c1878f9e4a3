"""Parameters as scikit-learn and River handle them: get_params, set_params, clone and repr from the
signature.
"""
from __future__ import annotations

import inspect
from typing import Any, Dict, List, Optional, TypeVar

from . import errors

P = TypeVar("P", bound="Parameters")


class Parameters:
    """Attributes named like the parameters of __init__, stored as given."""

    __slots__ = ()

    @classmethod
    def _names(cls) -> List[str]:
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
        return [p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]

    def get_params(self, deep: bool = True) -> Dict[str, Any]:
        """The parameters of the constructor and their values."""
        return {name: getattr(self, name) for name in self._names()}

    def _get_params(self) -> Dict[str, Any]:  # River's name for it
        return self.get_params()

    def set_params(self: P, **params: Any) -> P:
        """Sets parameters. They are checked at once, and used from the next `fit` on, or if nothing
        was learned yet.
        """
        names = self._names()
        for name in params:
            if name not in names:
                raise errors.SettingError(
                    "Invalid parameter %r for estimator %s. Valid parameters are: %s"
                    % (name, type(self).__name__, ", ".join(names))
                )
        before = {name: getattr(self, name) for name in params}
        try:
            for name, value in params.items():
                setattr(self, name, value)
            self._changed()
        except Exception:
            for name, value in before.items():
                setattr(self, name, value)
            raise
        return self

    def _changed(self) -> None:
        """Parameters were set: check them."""

    def clone(
        self: P, new_params: Optional[Dict[str, Any]] = None, include_attributes: bool = False
    ) -> P:
        """A new object with the same parameters (and `new_params`) that has learned nothing."""
        return type(self)(**{**self.get_params(), **(new_params or {})})

    def _changed_params(self) -> Dict[str, Any]:
        """Parameters that differ from their defaults."""
        found = {}
        defaults = inspect.signature(type(self).__init__).parameters
        for name, value in self.get_params().items():
            default = defaults[name].default
            if not (value is default or (type(value) is type(default) and bool(value == default))):
                found[name] = value
        return found

    def __repr__(self) -> str:
        given = ["%s=%r" % item for item in self._changed_params().items()]
        return "%s(%s)" % (type(self).__name__, ", ".join(given))
