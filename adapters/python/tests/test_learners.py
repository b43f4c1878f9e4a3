"""Auto and ALSVM as learners: figures, ids and late labels, prices, numbers, settings, the
program's own results.
"""
import gzip
import itertools
import json
import re
import subprocess

import numpy as np
import pytest

from svmstream import ALSVM, Auto, datasets, errors
from svmstream.novelty import Step

rng = np.random.default_rng(11)
X = rng.normal(size=(400, 3))
Y = (X @ [1.0, -0.5, 0.25] + 0.1 * rng.normal(size=400) > 0).astype(int)
NUMBERS = X @ [2.0, -1.0, 0.5] + 7


@pytest.mark.parametrize("kind", [ALSVM, Auto])
def test_nothing_is_known_before_the_first_row(kind):
    model = kind()
    assert model.predict_one({"a": 1.0}) is None and model.predict_proba_one({"a": 1.0}) == {}
    assert model.decision_function_one({"a": 1.0}) == {}
    for name in ("classes_", "n_features_in_", "feature_names_in_"):
        assert not hasattr(model, name)
    for call in (model.predict, model.predict_proba, model.decision_function):
        with pytest.raises(errors.NotFittedError):
            call([[1.0]])
    model.learn_one({"a": 1.0}, "first")
    assert model.predict_one({"a": 5}) == "first" and model.predict_proba_one({"a": 5}) == {
        "first": 1.0
    }
    assert kind(task="regress").predict_one({"a": 1.0}) is None


@pytest.mark.parametrize("kind", [ALSVM, Auto])
def test_predicting_changes_nothing(kind):
    model = kind().learn_many(X, Y)
    before = model.fingerprint()
    model.predict_one([1, 2, 3]), model.predict_proba_one([1, 2, 3]), model.decision_function_one(
        [4, 5, 6]
    )
    model.predict(X), model.predict_proba(X), model.decision_function(
        X
    ), model.figures(), model.report(), repr(model)
    model.get_params(), model.classes_, model.n_features_in_, model.score(X, Y), model.to_bytes()
    assert model.fingerprint() == before
    assert model.fingerprint() == kind.from_bytes(model.to_bytes()).fingerprint()


@pytest.mark.parametrize("kind", [ALSVM, Auto])
def test_step_is_what_was_known_before(kind):
    model = kind()
    for x, y in zip(X.tolist(), Y.tolist()):
        expected = model.predict_one(x), model.predict_proba_one(x)
        step = model.step(x, y)
        assert isinstance(step, Step) and step.learned and step.y == expected[0]
        assert step.proba == pytest.approx(expected[1], rel=1e-6, abs=1e-12)
    assert model.step(x).learned is False and model.seen == 401
    assert model.step(x, 1, w=0).learned is False and model.seen == 401


@pytest.mark.parametrize("kind", [ALSVM, Auto])
def test_one_and_many_predict_alike(kind):
    for labels in (Y, Y + (X[:, 2] > 0.5), np.where(Y > 0, "b", "a")):
        model = kind().partial_fit(X, labels)
        single = [model.predict_one(x) for x in X[:50].tolist()]
        assert model.predict(X[:50]).tolist() == single
        for i, (row, scores) in enumerate(
            zip(model.predict_proba(X[:50]), model.decision_function(X[:50]))
        ):
            assert dict(zip(model.classes_.tolist(), row)) == pytest.approx(
                model.predict_proba_one(X[i].tolist()), rel=1e-9
            )
            one = model.decision_function_one(X[i].tolist())
            if len(one) == 2:
                assert scores == pytest.approx(one[model.classes_[1]], rel=1e-9)
            else:
                assert list(scores) == pytest.approx([one[c] for c in model.classes_], rel=1e-9)
        assert np.allclose(np.exp(model.predict_log_proba(X[:9])), model.predict_proba(X[:9]))
        assert kind().fit(X, labels).score(X, labels) > 0.7


def test_order_of_appearance_does_not_turn_the_sign():
    """classes_ is sorted; the library counts classes as they appear."""
    for first in (0, 1):
        order = np.argsort(Y == first, kind="stable")[::-1]
        model = ALSVM().fit(X[order], Y[order])
        assert model.predict_one([0, 0, 0]) in (0, 1) and list(model.classes_) == [0, 1]
        assert np.array_equal(model.decision_function(X) > 0, model.predict(X) == 1)
        assert np.allclose(X @ model.coef_[0] + model.intercept_[0], model.decision_function(X))
        assert model.coef_.shape == (1, 3) and model.coef_[0, 0] > 0
    three = np.array(["c", "a", "b"])[Y + (X[:, 2] > 0.5)]
    model = ALSVM().fit(X, three)
    assert model.coef_.shape == (3, 3)
    assert np.allclose(X @ model.coef_.T + model.intercept_, model.decision_function(X))
    assert np.array_equal(model.classes_[model.decision_function(X).argmax(1)], model.predict(X))


def test_alsvm_is_the_solution_of_its_rows():
    """Least squares on targets of -1 and 1 with a penalty: numpy solves the same problem."""
    model = ALSVM(window=150, scale="none", C=3.0)
    for x, y in zip(X.tolist(), Y.tolist()):
        model.learn_one(x, y)
    A = np.hstack([np.ones((150, 1)), X[-150:]])
    w = np.linalg.solve(A.T @ A + np.eye(4) / 6, A.T @ (2.0 * Y[-150:] - 1))
    assert model.held == 150
    assert np.allclose(np.r_[model.intercept_, model.coef_[0]], w, rtol=1e-9)


def test_regression():
    for kind in (ALSVM, Auto):
        model = kind(task="regress").fit(X, NUMBERS)
        assert model.score(X, NUMBERS) > 0.99
        assert model.predict_one(X[0].tolist()) == pytest.approx(model.predict(X[:1])[0])
        low, high = model.predict_interval(X).T
        assert ((low <= NUMBERS) & (NUMBERS <= high)).mean() > 0.8
        assert model.predict_interval_one(X[0].tolist()) == pytest.approx((low[0], high[0]))
        for name in ("classes_", "predict_proba", "decision_function", "predict_proba_one"):
            assert not hasattr(model, name), name
    linear = ALSVM(task="regress", window=0).fit(X, NUMBERS)
    assert linear.coef_ == pytest.approx(
        [2, -1, 0.5], abs=0.02
    ) and linear.intercept_ == pytest.approx(7, abs=0.02)
    assert not hasattr(ALSVM(), "predict_interval")


def test_forget_is_exact():
    with_all, without = ALSVM(scale="none"), ALSVM(scale="none")
    for i, (x, y) in enumerate(zip(X.tolist(), Y.tolist())):
        with_all.learn_one(x, y, id=i % 100)
        if i % 100 != 7:
            without.learn_one(x, y)
    assert with_all.forget(7) == 4 and with_all.held == 396
    assert np.allclose(with_all.coef_, without.coef_, rtol=1e-10)
    with pytest.raises(KeyError, match="7"):
        with_all.forget(7)
    assert with_all.learn_one([1, 2, 3], 1, id="text").forget("text") == 1
    for wrong in (None, 1.5, "x" * 65, b"x", ""):
        with pytest.raises(errors.BadIdError):
            with_all.forget(wrong)


@pytest.mark.parametrize("kind", [ALSVM, Auto])
def test_late_labels(kind):
    model = kind(labels_ttl=60.0)
    for i, (x, y) in enumerate(zip(X.tolist(), Y.tolist())):
        model.learn_one(x, None, id=i, ts=1000.0 + i)
        if i >= 10:
            model.label(i - 10, y, ts=1000.0 + i)
    assert model.figures()["labels_joined"] == 390 and model.figures()["waiting"] == 10
    assert sorted(model.classes_) == [0, 1]
    with pytest.raises(KeyError):
        model.label("absent", 1)
    before = model.fingerprint()
    with pytest.raises(errors.BadLabelError):
        model.label(399, None)
    with pytest.raises(errors.BadLabelError):
        model.label(399, float("nan"))
    assert model.fingerprint() == before
    with pytest.raises(KeyError):
        model.label(395, 1, ts=5000.0)  # expired
    numbers = kind(task="regress").learn_one({"a": 1}, id="n").label("n", 2.5)
    assert numbers.predict_one({"a": 1}) is not None


def test_prices_move_decisions():
    plain, dear = ALSVM().fit(X, Y), ALSVM(prices={1: 50.0}).fit(X, Y)
    assert (dear.predict(X) == 1).sum() > (plain.predict(X) == 1).sum()
    pairs = ALSVM(prices={(1, 0): 50.0}).fit(X, Y)
    assert np.array_equal(pairs.predict(X), dear.predict(X))
    assert ALSVM(prices={}).fit(X, Y).predict(X).tolist() == plain.predict(X).tolist()


def test_class_weights():
    even = ALSVM(class_weight={0: 2.0, 1: 2.0}, window=0).fit(X, Y)
    weighted = ALSVM(window=0).fit(X, Y, sample_weight=[2.0] * 400)
    assert np.allclose(even.coef_, weighted.coef_, rtol=1e-9)
    rare = np.r_[Y[:300] * 0, Y[300:]]
    assert (ALSVM(class_weight="balanced").fit(X, rare).predict(X)).sum() > ALSVM().fit(
        X, rare
    ).predict(X).sum()


def test_window_forgetting_and_falsvm():
    assert ALSVM(window=50).fit(X, Y).held == 50
    assert ALSVM(window_seconds=100.0).learn_many(X, Y, ts=np.arange(400.0)).held == 101
    assert not np.allclose(ALSVM(forgetting=0.9).fit(X, Y).coef_, ALSVM().fit(X, Y).coef_)
    assert ALSVM(falsvm=True).fit(X, Y).figures()["learned"] < 400
    assert ALSVM(scale="none").fit(X, Y).setting("scale") == "none"


def test_reset_and_fit_forget_everything():
    model = ALSVM().fit(X, Y)
    model.reset()
    assert model.held == 0 and model.predict_one([1, 2, 3]) is None
    with pytest.raises(errors.NotFittedError):
        model.predict(X)
    model.partial_fit(X[:50], Y[:50])
    assert np.allclose(model.coef_, ALSVM().fit(X[:50], Y[:50]).coef_)
    again = model.fit(X[:, :2], np.where(Y > 0, "x", "y"))
    assert again is model and model.n_features_in_ == 2 and list(model.classes_) == ["x", "y"]


def test_configure_equals_a_new_learner():
    model = ALSVM().fit(X, Y).configure({"C": 10, "window": 100})
    assert model.setting("C") == "10" and model.held == 100
    assert np.array_equal(model.coef_, ALSVM(C=10.0, window=100).fit(X, Y).coef_)
    before = model.fingerprint()
    for wrong in (
        {"C": -1},
        {"windw": 3},
        {"seed": 5},
        {"task": "regress"},
        {"C": 5, "window": "x"},
    ):
        with pytest.raises(errors.SettingError):
            model.configure(wrong)
    assert model.fingerprint() == before


def test_declared_classes():
    model = ALSVM().partial_fit(X[:1], [2], classes=[3, 1, 2])
    assert list(model.classes_) == [1, 2, 3] and model.predict(X[:2]).tolist() == [2, 2]
    assert model.predict_proba(X[:1]).tolist() == [[0, 1, 0]]
    assert (
        model.decision_function(X[:1]).shape == (1, 3)
        and model.decision_function(X[:1]).argmax() == 1
    )
    model.partial_fit(X[:9], [1, 2, 1, 2, 1, 2, 1, 2, 1], classes=(1, 2, 3))
    scores = model.decision_function(X)
    assert (
        np.array_equal(model.classes_[scores.argmax(1)], model.predict(X))
        and (scores[:, 2] == -1).all()
    )
    two = ALSVM().partial_fit(X[:1], ["b"], classes=["a", "b"])
    assert two.decision_function(X).shape == (400,) and (two.decision_function(X) > 0).all()
    assert (ALSVM().partial_fit(X[:1], ["a"], classes=["a", "b"]).decision_function(X) < 0).all()


def test_figures_and_report_are_those_of_the_program():
    model = ALSVM()
    model.learn_many(X, Y)
    figures = model.figures()
    assert figures["seen"] == figures["learned"] == 400 and 0.8 < figures["accuracy"] <= 1
    assert all(v is None or isinstance(v, (int, float, str)) for v in figures.values())
    assert type(figures["seen"]) is int and type(figures["accuracy"]) is float
    assert re.search(r"^rows +400$", model.report(), re.M)
    assert json.loads(model.report(2.0, json=True))["accuracy"] == pytest.approx(
        figures["accuracy"]
    )


def test_repr_reads_like_the_call():
    assert (
        repr(ALSVM()) == "ALSVM()"
        and repr(Auto(seed=3, categories=("a",))) == "Auto(categories=('a',), seed=3)"
    )
    assert (
        repr(eval(repr(ALSVM(C=2.0, settings={"interval": 0.5}))))
        == "ALSVM(C=2.0, settings={'interval': 0.5})"
    )


@pytest.mark.parametrize("name", ["weather", "occupancy"])
@pytest.mark.parametrize(
    "kind, options", [(Auto, []), (ALSVM, ["--method", "alsvm", "--refit", "none"])]
)
def test_the_figures_of_eval(name, kind, options, program, examples, tmp_path):
    """The program and the package over the same rows: every figure has the same digits."""
    file = tmp_path / "rows.csv"
    with gzip.open(examples / (name + ".csv.gz"), "rt") as source:
        file.write_text("".join(itertools.islice(source, 2001)))
    out = subprocess.run(
        [program, "eval", file, "--json", "--novelty", "none", "--ts", "", *options],
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    theirs = json.loads(out)
    model = kind()
    for x, y in datasets.rows(file):
        model.learn_one(x, y)
    ours = json.loads(model.report(json=True))
    assert ours["rows"] == 2000 and ours["accuracy"] > 0.5
    changing = {
        "seconds",
        "memory_predicted",
        "tree_waits",
        "tree_wait_seconds",
        "tree_wait_longest",
    }
    assert {k: v for k, v in ours.items() if k not in changing} == {
        k: v for k, v in theirs.items() if k not in changing
    }
