"""Warnings that name the line of the caller, however deep inside of the package they arise."""
from __future__ import annotations

import sys
import warnings
from typing import Type


def warn(text: str, category: Type[Warning] = UserWarning) -> None:
    """Warns at the first frame outside of the package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _inside(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level + 1)


def _inside(name: str) -> bool:
    return name == __package__ or name.startswith("%s." % __package__)
