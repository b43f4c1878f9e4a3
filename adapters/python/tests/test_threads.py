"""Threads: the global lock is released in C, one object survives any mixture of calls, a crash of
none of them.
"""
import os
import pickle
import signal
import threading
import time

import numpy as np

from svmstream import ALSVM, Auto, Monitor, errors

rng = np.random.default_rng(4)
X = rng.normal(size=(4000, 8))
y = (X[:, 0] + X[:, 1] > 0).astype(int)


def run(*targets):
    """Runs functions in threads; raises what the first of them raised."""
    failures = []

    def guarded(target):
        try:
            target()
        except BaseException as error:  # noqa: B902
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread hangs"
    if failures:
        raise failures[0]


def test_the_global_lock_is_released_while_c_learns():
    """While one thread is inside of C, Python runs in another."""
    model, done, turns = Auto(), threading.Event(), 0

    def learn():
        model.partial_fit(X, y)
        done.set()

    thread = threading.Thread(target=learn)
    thread.start()
    while not done.is_set():
        turns += 1
        time.sleep(0)
    thread.join()
    assert turns > 20


def test_different_objects_learn_as_alone():
    """The same rows in four objects at once give the bits that they give one after the other."""
    when = np.arange(4000.0)

    def learned(model):
        for i in range(0, 4000, 500):
            model.learn_many(X[i : i + 500], y[i : i + 500], ts=when[i : i + 500])
        for i, row in enumerate(X[:500].tolist()):
            model.learn_one(row, int(y[i]), ts=4000.0 + i)
        return model

    alone = learned(ALSVM())
    models = [ALSVM() for _ in range(4)]
    started = time.process_time()
    run(*[lambda m=m: learned(m) for m in models])
    assert time.process_time() - started < 30
    assert {m.fingerprint() for m in models} == {alone.fingerprint()}


def test_one_object_from_many_threads():
    """Every row is learned once, and readers see a model that is whole."""
    model = ALSVM().partial_fit(X[:100], y[:100])
    stop = threading.Event()
    each = 1000

    def writer(k):
        for i in range(each):
            model.learn_one(X[i].tolist(), int(y[i]), id=k * each + i)

    def reader():
        while not stop.is_set():
            assert model.predict_one(X[0].tolist()) in (0, 1)
            assert abs(sum(model.predict_proba_one(X[1].tolist()).values()) - 1) < 1e-9
            assert model.predict(X[:20]).shape == (20,)
            model.figures(), model.classes_, model.coef_, repr(model), model.fingerprint()
            assert ALSVM.from_bytes(model.to_bytes()).held <= 1000

    def writers():
        try:
            run(*[lambda k=k: writer(k) for k in range(3)])
        finally:
            stop.set()

    run(writers, reader)
    assert model.seen == 100 + 3 * each and model.figures()["learned"] == 100 + 3 * each
    assert model.held == 1000


def test_labels_and_removals_from_other_threads():
    model = Auto(labels_ttl=1e6)
    n = 600
    ready = [threading.Event() for _ in range(n)]

    def rows():
        for i in range(n):
            model.learn_one({"a": float(X[i, 0]), "w": "xy"[i % 2]}, id=i)
            ready[i].set()

    def labels():
        for i in range(n):
            assert ready[i].wait(60)
            model.label(i, bool(y[i]))

    def strangers():
        for i in range(300):
            try:
                model.forget(10**6 + i)
            except errors.UnknownIdError:
                continue
            raise AssertionError("forgot a row that never was")

    run(rows, labels, strangers)
    assert model.figures()["labels_joined"] == n and model.classes_.tolist() == [False, True]


def test_fit_and_set_params_beside_predictions():
    model = ALSVM().fit(X[:200], y[:200])
    stop = threading.Event()

    def fits():
        try:
            for i in range(30):
                model.set_params(C=1.0 + i)
                model.fit(X[:200], y[:200])
                model.reset()
                model.partial_fit(X[:200], y[:200])
        finally:
            stop.set()

    def predicts():
        while not stop.is_set():
            try:
                assert model.predict(X[:50]).shape == (50,)
            except errors.NotFittedError:
                pass  # between reset and partial_fit

    run(fits, predicts, predicts)


def test_alerts_reach_the_callback_once():
    received = []
    monitor = Monitor(limits={"a": (0, 1)}, interval=60, on_alert=received.append)

    def feed(k):
        for i in range(400):
            monitor.learn_one({"a": 5.0 if i % 40 == 39 else 0.5, "b": float(k)})

    run(*[lambda k=k: feed(k) for k in range(3)])
    assert sorted(a.number for a in received) == [a.number for a in monitor.alerts] and received


def test_objects_die_in_other_threads():
    def churn():
        for i in range(60):
            model = ALSVM().partial_fit(X[:20], y[:20])
            threading.Thread(target=lambda m=model: m.predict(X[:5])).start()
            del model

    run(churn, churn)


def in_child(function):
    """What a function prints in a forked child that has a minute."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            os.write(write, str(function()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as out:
        text = out.read()
    assert os.waitpid(child, 0)[1] == 0
    return text


def test_after_a_fork():
    """Learners without a thread go on in the child; Auto, whose thread is not there, says so."""
    linear, auto = ALSVM().partial_fit(X[:200], y[:200]), Auto().partial_fit(X[:200], y[:200])

    def attempt():
        try:
            return auto.learn_one(X[0].tolist(), 1)
        except errors.UnavailableError as error:
            return error.code

    assert in_child(lambda: linear.learn_one(X[0].tolist(), 1).seen) == "201"
    assert in_child(attempt) == "unavailable"
    assert in_child(lambda: Auto().partial_fit(X[:200], y[:200]).seen) == "200"
    data = pickle.dumps(auto)
    assert in_child(lambda: pickle.loads(data).learn_one(X[0].tolist(), 1).seen) == "201"
    assert auto.learn_one(X[0].tolist(), 1).seen == 201 and linear.seen == 200
