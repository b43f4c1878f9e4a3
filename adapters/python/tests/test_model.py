"""Model: what a process publishes, applied here, gives the scores of that process, on raw rows too.
"""
import copy
import pickle
import random
import subprocess

import numpy as np
import pytest

from process import Process

from svmstream import Model, Stream, errors


def sample(r, kind):
    """A raw row with words and missing values, and its label."""
    x = {"t": r.gauss(20, 5), "p": r.gauss(1000, 30),
         "m": r.choice(["press", "saw", "drill", "m=x"]), "n": r.gauss(0, 1)}
    if r.random() < 0.2:
        x[r.choice(["t", "p"])] = None
    if r.random() < 0.1:
        x["m"] = None
    value = (x["t"] or 20) - 20 + 4 * (x["m"] == "saw") + x["n"]
    if kind == "regress":
        return x, value
    if kind == "three":
        return x, "low" if value < -3 else "high" if value > 3 else "mid"
    return x, int(value > 0)


@pytest.mark.parametrize("kind", ["two", "three", "regress"])
def test_equals_the_process(program, kind, tmp_path):
    r = random.Random(kind)
    task = "regress" if kind == "regress" else "classify"
    with Process(program, method="alsvm", novelty="none", refit="none", task=task,
                 scale="standard") as run, \
            Stream(run.ctl, missing="mean") as s:
        for score in s.send_many(sample(r, kind) for _ in range(300)):
            assert score.scored, score
        with s.models(timeout=20) as models:
            s.publish()
            event = next(m for m in models if m.seen == 300)
        model = Model.from_event(event)
        assert model.reproduces and model.version == event.version
        others = [Model.from_event(event.payload), Model.from_event(dict(event)),
                  pickle.loads(pickle.dumps(model)),
                  copy.deepcopy(model), s.model()]
        fresh = [sample(r, kind)[0]
                 for _ in range(50)] + [{"t": 1.0, "p": 2.0, "m": "unseen", "n": 0}]
        for x in fresh:
            there = s.score(x)
            assert there.model == model.version
            assert model.decision_function_one(x) == pytest.approx(there.scores, rel=1e-12,
                                                                   abs=1e-12)
            assert model.predict_one(x) == pytest.approx(there.yhat) if task == "regress" else \
                model.predict_one(x) == there.yhat
            assert model.predict_proba_one(x) == pytest.approx(there.proba, rel=1e-9)
            assert all(o.decision_function_one(x) == model.decision_function_one(x) for o in others)
        table = np.array([model._row(x, None) for x in fresh])
        expected = [model.decision_function_one(x) for x in fresh]
        assert model.decision_function(fresh).reshape(len(fresh), -1).tolist() == expected
        assert model.decision_function(table).reshape(len(fresh), -1).tolist() == expected
        assert table @ model.coef_.T + model.intercept_ == pytest.approx(np.array(expected), rel=1e-9, abs=1e-9)
        assert model.predict(fresh).tolist() == [model.predict_one(x) for x in fresh]
        if task == "classify":
            proba = model.predict_proba(table)
            assert proba.sum(axis=1) == pytest.approx(np.ones(len(fresh)))
            assert proba[0].tolist() == list(model.predict_proba_one(fresh[0]).values())
        else:
            with pytest.raises(errors.UnavailableError, match="probabilities"):
                model.predict_proba(table)
        # files: the payload, and JSON of the program
        model.save(tmp_path / "m.msgpack")
        json = subprocess.run([program, "model", "export", str(tmp_path / "m.msgpack")], check=True,
                              stdout=subprocess.PIPE).stdout
        (tmp_path / "m.json").write_bytes(json)
        for name in ("m.msgpack", "m.json"):
            assert Model.load(tmp_path / name).decision_function(fresh) == pytest.approx(model.decision_function(fresh))


def test_what_the_process_published(program):
    """The scores of rows that the process learned after it published the version, and not only of
    `ctl score`.
    """
    r = random.Random(8)
    with Process(program, method="alsvm", novelty="none", refit="none",
                 **{"publish.every": 1}) as run, \
            Stream(run.ctl, missing="mean") as s, s.models(timeout=20) as models:
        sent = [sample(r, "two") for _ in range(40)]
        scores = [s.send(*row) for row in sent]
        known = {}
        for event in models:
            known[event.version] = Model.from_event(event)
            if event.seen == 40:
                break
        matched = [(known[score.model], x, score) for (x, _), score in zip(sent, scores)
                   if score.model in known]
        assert len(matched) > 30
        for model, x, score in matched[5:]:
            assert model.decision_function_one(x) == pytest.approx(score.scores, rel=1e-9, abs=1e-9)


def test_calendar(program):
    with Process(program, method="alsvm", novelty="none", refit="none",
                 calendar="day") as run, Stream(run.ctl) as s:
        for i in range(50):
            s.send({"a": float(i % 5)}, int(i % 24 > 12), ts=1.6e9 + 3600 * i)
        model = s.model()
        with pytest.raises(errors.WrongTypeError, match="time"):
            model.predict_one({"a": 1.0})
        there = s.command("score", sample={"x": {"a": 1.0}, "ts": 1.6e9})
        assert model.decision_function_one({"a": 1.0}, ts=1.6e9) == pytest.approx(there["scores"], rel=1e-9)


def test_wrong_inputs(program, tmp_path, examples):
    with Process(program, method="alsvm", novelty="none",
                 refit="none") as run, Stream(run.ctl) as s:
        for i in range(20):
            s.send({"a": float(i), "b": "pq"[i % 2]}, i % 2)
        model = s.model()
        s.command("reset")
        s.send([1.0, 2.0], 0)
        unnamed = s.model()
    d = model.n_features_in_
    for call, kind in ((lambda: model.predict([[1.0]]), errors.WrongDimensionError),
                       (lambda: model.predict(np.zeros(d)), errors.WrongDimensionError),
                       (lambda: model.predict([[float("nan")] * d]), errors.NotFiniteError),
                       (lambda: model.predict([["x"] * d]), errors.WrongTypeError),
                       (lambda: model.predict_one({"a": "word", "b": "p"}), errors.WrongTypeError),
                       (lambda: model.predict_one({"a": object()}), errors.WrongTypeError),
                       (lambda: model.predict_one({"c": 1.0}), errors.WrongColumnsError),
                       (lambda: model.predict_one({"a": float("inf")}), errors.NotFiniteError),
                       (lambda: unnamed.predict_one({"a": 1.0}), errors.UnavailableError),
                       (lambda: unnamed.predict_proba([[1.0, 2.0]]), errors.UnavailableError),
                       (lambda: Model.from_event(b"\x00\x01"), errors.SvmstreamError),
                       (lambda: Model.from_event({"W": [1]}), errors.WrongTypeError),
                       (lambda: Model.from_event(7), errors.WrongTypeError),
                       (lambda: Model.load(tmp_path / "none"), errors.FileError),
                       (lambda: Model.load(tmp_path), errors.FileError),
                       (lambda: Model.load(examples / "weather.csv.gz"), errors.SvmstreamError)):
        with pytest.raises(kind) as caught:
            call()
        assert str(caught.value)
    with pytest.raises(errors.WrongTypeError, match="one row: give a list of rows, or call pred"):
        model.predict({"a": 1.0, "b": "p"})
    assert model.predict_one({"a": 3.0, "b": "p"}) in (0, 1)
    for cut in range(0, len(model.to_bytes()), 17):
        with pytest.raises(errors.SvmstreamError):
            Model.from_event(model.to_bytes()[:cut])
