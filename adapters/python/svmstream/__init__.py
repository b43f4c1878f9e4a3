"""Streams of samples: a learner that follows them, novelty, alerts, and the client of a running `svmstream`.

Errors are exceptions by code, with the sentence: see `svmstream.errors`.
"""
from __future__ import annotations

from . import datasets, errors
from .evaluation import evaluate
from .learners import ALSVM, Auto
from .novelty import Monitor, Novelty
from ._library import ffi as _ffi, lib as _lib

__all__ = ["ALSVM", "Auto", "Monitor", "Novelty", "datasets", "errors", "evaluate"]
__version__: str = _ffi.string(_lib.svs_version()).decode()
