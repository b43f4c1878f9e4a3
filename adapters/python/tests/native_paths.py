"""Goes once through every way from the package into the library: run by test_memcheck.py under
memcheck.

It ends with a leak on purpose (a learner that nobody frees), which the test must find: else it
would find no other."""
import copy
import gc
import io
import os
import pickle
import sys

import numpy as np

import svmstream
from svmstream import errors
from svmstream._library import Error, ffi, lib

RNG = np.random.default_rng(1)
X = RNG.normal(size=(240, 4))
Y = (X[:, 0] + X[:, 1] > 0).astype(int)
NAMES = ("a", "b", "c", "d")
CLASSES = np.array(["no", "yes"])


def row(i):
    return dict(zip(NAMES, X[i].tolist()))


def refused(error, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except error:
        return
    raise AssertionError("%s was not raised" % error.__name__)


def single_rows(make):
    model = make()
    for i in range(120):
        model.learn_one(row(i), CLASSES[Y[i]], id=i, ts=1e9 + i)
    model.step(dict(row(1), word="hall", gone=None), CLASSES[0], w=2.0)
    model.step(X[3].tolist() + [1.0], None, id="late") if not model.columns else model.step(
        row(3), None, id="late"
    )
    model.label("late", "yes")
    assert model.forget(5) == 1
    refused(errors.UnknownIdError, model.forget, 5)
    refused(errors.UnknownIdError, model.label, "never", "yes")
    refused(errors.NotFiniteError, model.learn_one, dict(row(0), a=float("inf")), "no")
    refused(errors.InputError, model.learn_one, row(0), "x" * 100)
    refused(errors.InputError, model.learn_one, dict(row(0), a="word"), "no", id="y" * 100)
    refused(errors.BadWeightError, model.learn_one, row(0), "no", w=-1.0)
    model.predict_one(row(1)), model.predict_proba_one(row(1))
    return model


def blocks(make):
    model = make()
    for first in range(0, 120, 40):
        part = slice(first, first + 40)
        model.partial_fit(X[part], Y[part], classes=[0, 1], sample_weight=np.ones(40))
    model.partial_fit(X[120:160].astype(np.float32), Y[120:160])
    model.partial_fit(np.asfortranarray(X[160:200]), Y[160:200])
    model.partial_fit(X[200:, :][::-1], Y[200:][::-1])
    refused(ValueError, model.partial_fit, np.full((3, 4), np.nan), [0, 1, 0])
    refused(ValueError, model.partial_fit, X[:3, :2], [0, 1, 0])
    refused(ValueError, model.partial_fit, [[1.0, 2.0], [1.0]], [0, 1])
    model.predict(X), model.predict_proba(X), model.decision_function(X), model.score(X, Y)
    model.fit(X, CLASSES[Y])
    return model


def copies(model):
    for other in (
        copy.copy(model),
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        type(model).from_bytes(model.to_bytes()),
    ):
        assert other.fingerprint() == model.fingerprint()
    file = io.BytesIO()
    model.save(file)
    damaged = bytearray(file.getvalue())
    damaged[len(damaged) // 2] ^= 1
    for wrong in (b"", b"nonsense", file.getvalue()[:-9], bytes(damaged)):
        refused(errors.SvmstreamError, type(model).load, io.BytesIO(wrong))
    model.figures(), model.report(), model.report(json=True), model.features
    model.configure({"missing": "zero"})
    refused(errors.SettingError, model.configure, {"window": -5})
    refused(errors.SettingError, type(model), settings={"no.such.setting": 1})
    model.reset()


def monitoring():
    monitor = svmstream.Monitor(limits={"a": (-9, 9)}, interval=60)
    for i in range(200):
        monitor.step(row(i % 240))
    assert monitor.step(dict(row(1), a=50.0)).alerts
    monitor.learn_many(X)
    monitor.score_one(row(1)), monitor.p_many(X[:5])
    refused(errors.SvmstreamError, monitor.verdict, 12345, True)
    copies(monitor)
    novelty = svmstream.Novelty()
    novelty.learn_many(X)
    novelty.score_many(X[:5])


def regression():
    model = svmstream.ALSVM(task="regress")
    for i in range(100):
        model.learn_one(row(i), float(X[i, 0]))
    model.partial_fit(X, X[:, 0])
    refused(errors.InputError, model.learn_one, row(0), "word")
    model.predict(X), model.coef_, model.intercept_


def client(address):
    """The outbox: scores, refusals, cursors, a decoded model."""
    with svmstream.Stream(address, src="paths-%d" % os.getpid(), timeout=60) as stream:
        for i in range(5):
            stream.send(row(i), "yes", id=i, cursor="place %d" % i)
        assert stream.place == b"place 4" and stream.wanted == 5
        scores = list(stream.send_many([(row(i), "no") for i in range(40)], batch=8, in_flight=4))
        assert len(scores) == 40 and stream.figures()["acked"] == 45
        refused(errors.InputError, stream.send, dict(row(0), a=float("inf")), "no")
        refused(errors.BadKeyError, stream.send, row(0), "no", key="machine")
        model = stream.model()
        model.predict_proba_one(row(1)), model.predict(X[:5])
    again = svmstream.Stream(address, timeout=60)
    del again  # without close
    refused(errors.SvmstreamError, svmstream.Model.from_event, b"no event")


def leak_on_purpose():
    options = ffi.new("svs_options *")
    lib.svs_options_default(options)
    lib.svs_learner_new(options, 3, Error())


def main():
    for make in (svmstream.ALSVM, lambda: svmstream.Auto(seed=2)):
        copies(single_rows(make))
        copies(blocks(make))
    monitoring()
    regression()
    if len(sys.argv) > 1:
        client(sys.argv[1])
    leak_on_purpose()
    gc.collect()
    print("went through")


if __name__ == "__main__":
    sys.exit(main())
