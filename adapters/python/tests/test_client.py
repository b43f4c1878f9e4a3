"""Stream against a running process: scores are those that the process publishes, errors are those
of its sentence, nothing is lost.
"""
import datetime
import decimal
import gc
import os
import subprocess
import sys
import threading
import time
import uuid
import warnings

import numpy as np
import pytest
import zmq

from process import Process, rows

import svmstream
from svmstream import Stream, _packing, errors
from svmstream.wire import Sample, Score


@pytest.fixture(scope="module")
def run(program):
    with Process(program, method="alsvm", novelty="none", refit="none") as process:
        yield process


@pytest.fixture
def stream(run):
    with Stream(run.ctl) as s:
        s.command("reset")
        s.before = s.status().seen  # counters outlive a reset
        yield s


def test_finds_the_others(run):
    with Stream(run.ctl) as s:
        assert {k: v["address"] for k, v in s.addresses.items()} == run.addresses
        assert s.status().version == svmstream.__version__ or s.status()["version"]


def test_from_in_and_out_where_ports_follow(program):
    """As the defaults do: in, out and ctl are neighbours."""
    import socket
    for _ in range(20):  # three free ports in a row
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port > 65530:
            continue
        names = {k: "tcp://127.0.0.1:%d" % (port + i) for i, k in enumerate(("in", "out", "ctl"))}
        try:
            process = Process(program, method="alsvm", **names)
        except AssertionError:
            continue
        with process:
            for address in names.values():
                with Stream(address) as s:
                    assert s.addresses["ctl"]["address"] == names["ctl"]
                    assert s.send([1.0], 0).number == 0
        return
    pytest.fail("no three ports in a row")


def test_in_alone_sends(run):
    with Stream(run.addresses["in"], timeout=5) as s:
        assert isinstance(s.send([1.0, 2, 3, 4], 1), Score)
        with pytest.raises(errors.UnavailableError, match="ctl"):
            s.status()


def test_send_forms(stream):
    """Each form of a row is the same row: after learning, all are scored alike."""
    for x, y in rows(50):
        stream.send(x, y)
    x = [0.1, -2.0, 3.0, 0.5]
    forms = [x, tuple(x), np.array(x), np.array(x, dtype=object),
             np.array([1, 2, 3, 4])[::-1] * 0 + np.array(x)]
    found = [stream.send(form) for form in forms]
    assert all(s.scores == found[0].scores for s in found)
    single = stream.send(np.array(x, np.float32))
    assert single.scores == pytest.approx(found[0].scores, rel=1e-6)
    assert found[0].yhat in (0, 1) and set(found[0].proba) == {0, 1}
    assert sum(found[0].proba.values()) == pytest.approx(1)
    assert found[0]["scores"] == found[0].scores and found[0].novelty is None and found[0].scored
    with pytest.raises(AttributeError, match="nonsense"):
        found[0].nonsense  # pylint: disable=pointless-statement
    assert stream.score(x).scores == found[0].scores


def test_scores_are_the_published_ones(stream):
    sent = list(rows(300))
    with stream.scores(timeout=20) as events:
        replies = [stream.send(x, y, id=i, ts=1e9 + i) for i, (x, y) in enumerate(sent)]
        published = [next(events) for _ in sent]
        assert events.lost == 0
    for a, b in zip(replies, published):
        assert {k: v for k, v in b.items()
                if k not in ("v", "stream", "epoch", "seq", "ts")} == a.raw
        assert b.topic.startswith("score.") and b.id == a.id


@pytest.mark.parametrize("batch,in_flight", [(1, 64), (64, 64), (7, 1), (4096, 3)])
def test_many_in_order_like_one_by_one(stream, batch, in_flight):
    sent = list(rows(500))
    single = [stream.send(x, y).scores for x, y in sent]
    stream.command("reset")
    many = list(stream.send_many(sent, batch=batch, in_flight=in_flight))
    assert [s.scores for s in many] == single
    assert [s.number for s in many] == list(range(500, 1000))
    stream.command("reset")
    X, y = np.array([x for x, _ in sent]), np.array([y for _, y in sent])
    assert [s.scores for s in stream.send_many(X, y, batch=batch, in_flight=in_flight)] == single


def test_many_forms(stream):
    pandas = pytest.importorskip("pandas")
    sent = [({"a": float(i), "b": "pq"[i % 2]}, i % 2) for i in range(40)]
    first = [s.scores for s in stream.send_many(sent)]
    frame = pandas.DataFrame([x for x, _ in sent])
    for form in (lambda: stream.send_many(frame, [y for _, y in sent]),
                 lambda: stream.send_many([Sample(x, y) for x, y in sent]),
                 lambda: stream.send_many(((x, y, {"id": 5}) for x, y in sent)),
                 lambda: stream.send_many((x for x, _ in sent), (y for _, y in sent), batch=3)):
        stream.command("reset")
        assert [s.scores for s in form()] == first


def test_dicts_with_labels_are_what_rows_of_their_own_are(stream):
    """The shortest way to pack a row, and `Sample`, agree: also about gaps and what is wrong."""
    sent = [({"a": 1.5, "b": 2}, 0), ({"a": None, "b": "x"}, 1), ({"a": object()}, 1), ({}, 0),
            ({"a": 1 << 70}, 0), ({"a": 1.0}, 1 << 70), ({"a": 1.0}, None),
            ({"a": np.float32(2)}, 1), ({"\udc80": 1.0}, 1), ({"a": 1.0}, np.int64(1))]
    packer = _packing.RowPacker()
    ours = list(packer.rows(sent))
    theirs = list(packer.rows([Sample(x, y) for x, y in sent]))
    assert [r if isinstance(r, bytes) else (type(r), str(r)) for r in ours] == [
        r if isinstance(r, bytes) else (type(r), str(r)) for r in theirs]
    assert sum(isinstance(r, bytes) for r in ours) == 6


def test_many_from_a_slow_source(run, stream):
    """Rows of a source that is slower than the process: their scores do not wait for more rows."""
    read, ahead = 0, []

    def slow():
        nonlocal read
        with Stream(run.ctl) as other:
            for x, y in rows(40):
                time.sleep(0.002)  # its pace
                for _ in range(10_000):
                    if other.status().seen - stream.before >= read:
                        break
                read += 1
                yield x, y

    for i, score in enumerate(stream.send_many(slow(), batch=1)):
        ahead.append(read - i)
    assert len(ahead) == 40 and max(ahead) <= 8


def test_a_refused_row_is_in_its_place(stream):
    good = list(rows(20))
    bad = {3: ([1.0], 0), 7: (np.array([1, np.nan, 2, 3]), 1), 12: (["x"] * 4, 1),
           13: (object(), 1)}
    sent = [bad.get(i, row) for i, row in enumerate(good)]
    sent[13] = bad[13][0]
    found = list(stream.send_many(sent, batch=4))
    wrong = {i for i, r in enumerate(found) if isinstance(r, Exception)}
    assert wrong == set(bad) and len(found) == 20
    assert isinstance(found[3], errors.WrongDimensionError) and "4" in str(found[3])
    assert isinstance(found[7], errors.NotFiniteError) and isinstance(found[13],
                                                                      errors.WrongTypeError)
    assert stream.status().seen - stream.before == 16
    everything = list(stream.send_many([[1.0]] * 10, batch=5))  # messages without any good row
    assert all(isinstance(r, errors.WrongDimensionError) for r in everything)


def test_sentences_of_the_process(stream):
    stream.send([1.0, 2.0], 0)
    for call, kind in ((lambda: stream.send([1.0], 0), errors.WrongDimensionError),
                       (lambda: stream.send([1.0, float("inf")], 0), errors.NotFiniteError),
                       (lambda: stream.send({"a": 1}, 0), errors.WrongKindError),
                       (lambda: stream.send([1.0, 2.0], 0, w=-1.0), errors.BadWeightError),
                       (lambda: stream.send([1.0, 2.0], 0, id="i" * 100), errors.SvmstreamError),
                       (lambda: stream.send([1.0, 2.0], 0, key="k"), errors.BadKeyError),
                       (lambda: stream.send("text"), errors.WrongTypeError),
                       (lambda: stream.send(b"bytes"), errors.WrongTypeError),
                       (lambda: stream.send({1.0, 2.0}), errors.WrongTypeError),
                       (lambda: stream.send([1.0, 2 ** 80]), errors.TooLargeError),
                       (lambda: stream.send(np.zeros((2, 2))), errors.WrongTypeError),
                       (lambda: stream.forget(99), errors.UnknownIdError),
                       (lambda: stream.label(99, 1), errors.UnknownIdError),
                       (lambda: stream.command("nonsense"), errors.UnknownOpError),
                       (lambda: stream.config(C=-1), errors.SettingError),
                       (lambda: stream.send_many(np.zeros(3)).__next__(), errors.WrongTypeError),
                       (lambda: list(stream.send_many(np.zeros((3, 2)), [1])),
                        errors.WrongDimensionError)):
        with pytest.raises(kind) as caught:
            call()
        assert len(str(caught.value)) > 10
    assert stream.status().seen - stream.before == 1 and stream.send([1.0, 2.0], 1).scored


def test_too_large_for_a_message(stream):
    stream.send([1.0, 2.0], 0)
    with pytest.raises(errors.TooLargeError):
        stream.send(np.zeros(200_000))
    assert stream.send([1.0, 2.0], 1).scored


def test_send_many_that_is_not_iterated_is_a_warning(stream):
    with pytest.warns(RuntimeWarning, match="nothing was sent") as found:
        stream.send_many([{"a": 1.0}])
        gc.collect()
    assert found[0].filename == __file__ and stream.status().seen == stream.before
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len([s for s in stream.send_many([{"a": 1.0}] * 3)]) == 3
        assert isinstance(next(stream.send_many([{"a": 1.0}])), Score)
        lazy = stream.send_many([{"a": 1.0}])
        assert "nothing was sent yet" in repr(lazy)
        lazy.close()
        assert "nothing" not in repr(lazy)
        del lazy
        gc.collect()


def test_wrong_values_and_settings_are_named(stream):
    for x in ({"a": np.array([1.0, 2.0])}, [np.array([1.0, 2.0])]):
        with pytest.raises(errors.WrongTypeError, match="is an array"):
            stream.send(x)
    now, name = datetime.datetime.now(), uuid.UUID(int=7)
    for send, text in ((lambda: stream.send({"a": 1.0, "when": now}), "x['when'] is a datetime: "
                        "numbers, strings, bools and None are allowed (give the time of a row as ts=)"),
                       (lambda: stream.send({"a": 1.0, "who": name}), "x['who'] is a UUID: numbers, "
                        "strings, bools and None are allowed (str() makes it a word)"),
                       (lambda: stream.send([1.0, name]), "x[1] is a UUID: "),
                       (lambda: stream.send({"a": 1.0}, id=name), "id is a UUID: "),
                       (lambda: stream.send({"a": 1.0}, name), "y is a UUID: "),
                       (lambda: stream.send({now: 1.0}), "a name of x is not "),
                       (lambda: stream.label(name, "y"), "a value is a UUID: ")):
        with pytest.raises(errors.WrongTypeError) as caught:
            send()
        assert str(caught.value).startswith(text)
    with pytest.raises(errors.SettingError, match="'window'"):
        stream.config("window")
    assert stream.status().seen == stream.before


def test_decimals_are_numbers_as_for_the_learners(stream):
    stream.send({"amount": 1.5}, "ok")
    assert stream.send({"amount": decimal.Decimal("2.5")}, "ok").scored
    with pytest.raises(errors.NotFiniteError, match="amount"):
        stream.send({"amount": decimal.Decimal("Infinity")}, "ok")
    svmstream.ALSVM().learn_one({"amount": decimal.Decimal("2.5")}, "ok")


def test_a_label_that_arrives_twice_or_too_late_is_refused_with_the_reasons(stream):
    joined = stream.status().labels_joined
    stream.send({"amount": 1.5}, id="a")
    stream.label("a", "ok")
    with pytest.raises(KeyError, match="no sample with id a waits for a label: it never arrived, "
                       "has its label, or was dropped by labels.ttl or labels.max"):
        stream.label("a", "ok")
    assert stream.status().labels_joined == joined + 1


def test_repr_names_address_and_source(run):
    with Stream(run.ctl, src="me") as s:
        assert repr(s) == "<Stream of %s, src me>" % run.ctl
    assert repr(s) == "<Stream of %s, src me, closed>" % run.ctl


def test_label_forget_config(stream):
    for i, (x, y) in enumerate(rows(30)):
        stream.send(x, y, id=i)
    stream.send([1.0, 2, 3, 4], id="late")
    learned = stream.status().learned
    stream.label("late", 1)
    assert stream.status().learned == learned + 1
    assert stream.forget("late") == 1 and stream.forget(3) == 1
    assert stream.config()["C"] == 1
    assert stream.config(C=2.5)["C"] == 2.5 and stream.config({"C": 1})["C"] == 1


def test_missing(run):
    with Stream(run.ctl, missing="mean") as s:
        s.command("reset")
        for x in ([1.0, 2.0], [3.0, 4.0]):
            s.send(x, 0)
        assert s.send(np.array([np.nan, 1.0]), 1).scored and s.send([None, 1.0], 1).scored


def test_columns(run):
    with Stream(run.ctl, columns=["a", "b"]) as s:
        s.command("reset")
        s.send([1.0, 2.0], 0)
        assert [c["name"] for c in s.command("columns")["columns"]] == ["a", "b"]
    with Stream(run.ctl, columns=["a", "c"], timeout=5) as s:
        with pytest.raises(errors.WrongColumnsError, match="c"):
            s.send([1.0, 2.0], 0)
        s.close(wait=False)


def test_events(stream):
    with stream.models(timeout=20) as models, stream.events("score", "error", timeout=20) as events:
        for x, y in rows(20):
            stream.send(x, y)
        with pytest.raises(errors.WrongDimensionError):
            stream.send([1.0])
        kinds = [type(next(events)).__name__ for _ in range(21)]
        assert kinds == ["Score"] * 20 + ["ErrorEvent"]
        stream.publish()
        version = stream.command("model")["model"]["version"]
        event = next(e for e in models if e.version == version)
        assert svmstream.Model.from_event(event).predict_one([1.0, 2, 3,
                                                              4]) == stream.score([1.0, 2, 3, 4]).yhat
    with stream.alerts(timeout=0.05) as alerts:
        assert list(alerts) == [] and list(alerts) == []
    with pytest.raises(errors.UnavailableError, match="closed"):
        next(alerts)


def test_loss_is_counted():
    from svmstream.wire import Losses, Score as S
    losses = Losses()
    for epoch, seq, good in ((1, 4, True), (1, 5, True), (1, 5, False), (1, 8, True), (2, 1, True)):
        assert losses.newer(S({"epoch": epoch, "seq": seq}, "score.a.")) is good
    assert losses.lost == 3


def test_nobody_there():
    with pytest.raises(TimeoutError, match="tcp://127.0.0.1:9"):
        Stream("tcp://127.0.0.1:9", timeout=0.3)
    for address in ("", "tcp://", "tcp://h:0", "tcp://h:x", 5):
        with pytest.raises((errors.InputError, errors.SettingError)):
            Stream(address, timeout=0.3)


def test_pull(program):
    with Process(program, **{"in.mode": "pull"}) as process, Stream(process.ctl) as s:
        assert s.status().seen == 0
        with pytest.raises(errors.UnavailableError, match="in.mode"):
            s.send([1.0])


def test_the_process_goes_away(program):
    process = Process(program, method="alsvm")
    s = Stream(process.ctl, timeout=2.5)
    with process:
        s.send([1.0], 0)
    with pytest.raises(TimeoutError, match="do not send them again"):
        s.send([1.0], 0)
    with pytest.raises(TimeoutError):
        s.command("status", timeout=0.2)
    with Process(program, method="alsvm", **process.addresses) as again:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert s.send([2.0],
                          1).scored  # after the one that waited; the first is lost, and reported
        assert any("lost" in str(w.message) for w in caught)
        assert s.status().seen == 2 and again
        s.close()


def test_life(run):
    before = threading.active_count()
    tasks = len(os.listdir("/proc/self/task"))
    own = zmq.Context()
    s = Stream(run.ctl, context=own)
    s.close()
    s.close()
    assert not own.closed
    with pytest.raises(errors.UnavailableError, match="closed"):
        s.send([1.0])
    own.term()
    with pytest.raises(RuntimeError):
        with Stream(run.ctl) as s:
            raise RuntimeError
    assert threading.active_count() == before and len(os.listdir("/proc/self/task")) == tasks
    with pytest.warns(ResourceWarning):
        s = Stream(run.ctl)
        del s
        gc.collect()


def test_threads(stream):
    failures = []

    def work():
        try:
            for x, y in rows(100):
                assert stream.send(x, y).scored
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures and stream.status().seen - stream.before == 400


def test_a_generator_that_is_dropped(stream):
    many = stream.send_many(rows(2000), batch=8)
    assert next(many).number == 0
    many.close()
    assert stream.send([1.0, 2, 3, 4], 1).scored
    assert stream._results == {}


def test_fork(run):
    code = """
import os, sys
from svmstream import Stream, errors
s = Stream(%r)
s.send([1.0, 2, 3, 4], 1)
child = os.fork()
if child == 0:
    try:
        s.send([1.0, 2, 3, 4], 1)
    except errors.UnavailableError as error:
        assert "fork" in str(error)
        s.close()
        del s
        with Stream(%r) as own:
            own.send([1.0, 2, 3, 4], 1)
        os._exit(7)
    os._exit(1)
assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 7
s.send([1.0, 2, 3, 4], 1)
s.close()
"""
    with Stream(run.ctl) as s:
        s.command("reset")
    assert subprocess.run([sys.executable, "-c", code % (run.ctl, run.ctl)], timeout=60,
                          check=False).returncode == 0
