"""Streams of samples: learners that follow them, novelty and alerts, and a client of `svmstream`.

A tour, from a row to a running stream (`svmstream help python` is the manual):

A row is a dict from column to number, word or None (missing), or a sequence of numbers. `Auto`
learns it and has nothing to set; `step` predicts first, then learns:

>>> from svmstream import Auto
>>> model = Auto()
>>> for i in range(200):
...     step = model.step({"temp": i % 10, "room": "hall"}, "warm" if i % 10 > 4 else "cold")
>>> step.yhat, step.learned
('warm', True)
>>> model.predict_one({"temp": 1, "room": "hall"})
'cold'

`ALSVM` is one exact linear model of a sliding window. It takes arrays as scikit-learn's estimators
do, and removes what it has learned, exactly:

>>> import numpy as np
>>> from svmstream import ALSVM
>>> X = np.random.default_rng(1).normal(size=(500, 3))
>>> linear = ALSVM().partial_fit(X, X[:, 0] > X[:, 1])
>>> linear.predict(X[:1]).shape, linear.coef_.shape
((1,), (1, 3))
>>> linear.learn_one(X[0], True, id="row-7").forget("row-7")
1

`Novelty` scores how unlike the past a row is, and `Monitor` reports alerts within a budget:

>>> from svmstream import Monitor, Novelty
>>> novelty = Novelty().learn_many(X)
>>> novelty.score_one([90.0, 0.0, 0.0]) > novelty.score_one([0.0, 0.0, 0.0])
True
>>> monitor = Monitor(limits={"temp": (0, 40)}, interval=60)
>>> [alert.rule for t in (20, 21, 95) for alert in monitor.step({"temp": t}).alerts]
['limits']

`evaluate` predicts each row of a stream before it is learned; `datasets` reads rows from files:

>>> from svmstream import datasets, evaluate
>>> result = evaluate(datasets.rows("examples/weather.csv.gz"), ALSVM(), limit=2000)
>>> result.figures["accuracy"] > 0.75
True

`Stream` is the client of a running `svmstream run` and `AsyncStream` the same for asyncio: rows are
sent until they are acknowledged, with their scores in the replies. `Model` predicts what a process
has learned, without it:

>>> from svmstream import AsyncStream, Model, Stream
>>> with Stream("tcp://127.0.0.1") as stream:  # doctest: +SKIP
...     score = stream.send({"temp": 1, "room": "hall"}, "cold")
...     model = stream.model()
>>> Model.load("model.msgpack").predict_one({"temp": 1, "room": "hall"})  # doctest: +SKIP
'cold'

Errors are exceptions by code, with a sentence that says what to do (`errors`):

>>> from svmstream import errors
>>> try:
...     model.learn_one({"temp": float("inf"), "room": "hall"}, "warm")
... except errors.InputError as error:
...     print(error.code)
not_finite
"""
from __future__ import annotations

import importlib as _importlib
from typing import TYPE_CHECKING, Any as _Any, List as _List

from . import datasets, errors
from .evaluation import evaluate
from .learners import ALSVM, Auto
from .novelty import Monitor, Novelty
from ._library import ffi as _ffi, lib as _lib

if TYPE_CHECKING:
    from .aio import AsyncStream
    from .client import Stream
    from .model import Model

__all__ = [
    "ALSVM",
    "AsyncStream",
    "Auto",
    "Model",
    "Monitor",
    "Novelty",
    "Stream",
    "datasets",
    "errors",
    "evaluate",
]
__version__: str = _ffi.string(_lib.svs_version()).decode()

# The learners need neither pyzmq nor msgpack: what does is imported at its first use.
_CLIENT = {"AsyncStream": "aio", "Model": "model", "Stream": "client"}


def __getattr__(name: str) -> _Any:
    if name not in _CLIENT:
        raise AttributeError("module 'svmstream' has no attribute %r" % name)
    try:
        module = _importlib.import_module("." + _CLIENT[name], __name__)
    except ModuleNotFoundError as missing:
        raise ImportError("svmstream.%s needs pyzmq and msgpack (pip install pyzmq msgpack): %s"
                          % (name, missing)) from missing
    globals()[name] = getattr(module, name)
    return globals()[name]


def __dir__() -> _List[str]:
    return sorted({*globals(), *_CLIENT} - {"TYPE_CHECKING", "annotations"})
