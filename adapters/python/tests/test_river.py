"""What River's documentation and its checks of estimators demand, and its loops, without River.

River's own checks: dicts in any order, features that appear and disappear, no effect on x,
pickling, clones, parameters,
probabilities that add up, mini-batches as DataFrames, and progressive validation."""
import copy
import inspect
import math
import pickle
import random

import numpy as np
import pandas as pd
import pytest

from svmstream import ALSVM, Auto, Monitor, Novelty

MODELS = [
    ALSVM(),
    ALSVM(task="regress"),
    Auto(),
    Auto(task="regress"),
    Novelty(),
    Monitor(interval=60),
    ALSVM(missing="mean"),
]
EACH = pytest.mark.parametrize("original", MODELS, ids=repr)


def dataset(model, n=120):
    rng = random.Random(42)
    for i in range(n):
        x = {
            "number": rng.gauss(0, 1),
            "count": rng.randrange(5),
            "flag": rng.random() < 0.5,
            "word": rng.choice("abc"),
            "other": None if rng.random() < 0.1 else rng.random(),
        }
        truth = x["number"] + x["flag"] > 0.3
        yield x, x["number"] * 2 + 1 if regress(model) else ("yes" if truth else "no") if labelled(
            model
        ) else None


def labelled(model):
    return hasattr(model, "task")


def regress(model):
    return getattr(model, "task", "") == "regress"


def answers(model, x):
    if not labelled(model):
        return {"novelty": model.score_one(x)}
    return {"y": model.predict_one(x)} if regress(model) else model.predict_proba_one(x)


def close(a, b):
    assert a.keys() == b.keys()
    for key in a:
        assert a[key] == b[key] or math.isclose(a[key], b[key], rel_tol=1e-6, abs_tol=1e-9), (
            key,
            a[key],
            b[key],
        )


@EACH
def test_learn_one_returns_self_and_leaves_x_alone(original):
    model = original.clone()
    for x, y in dataset(model, 40):
        x_before, y_before = copy.deepcopy(x), copy.deepcopy(y)
        assert model.learn_one(x, y) is model
        answers(model, x)
        assert x == x_before and list(x) == list(x_before) and y == y_before
        assert [type(v) for v in x.values()] == [type(v) for v in x_before.values()]


@EACH
def test_order_of_features_does_not_matter(original):
    """From the second row on to the bit (test_rows); with another order in the first one too, to
    rounding.

    River excepts ensembles that draw columns at random, which Auto is."""
    if isinstance(original, Auto):
        assert "check_shuffle_features_no_impact" in original._unit_test_skips
        return
    a, b = original.clone(), original.clone()
    rng = random.Random(1)
    for x, y in dataset(a):
        keys = list(x)
        rng.shuffle(keys)
        shuffled = {k: x[k] for k in keys}
        close(answers(a, x), answers(b, shuffled))
        a.learn_one(x, y)
        b.learn_one(shuffled, y)


@EACH
def test_features_appear(original):
    model = original.clone()
    for x, y in dataset(model):
        answers(model, x)
        model.learn_one(x, y)
        more = dict(x, **{"new%d" % (model.seen % 7): 1.5, "fresh%d" % (model.seen % 3): "word"})
        answers(model, more)
        model.learn_one(more, y)


@EACH
def test_features_disappear(original):
    model = original.clone()
    rng = random.Random(3)
    for x, y in dataset(model):
        model.learn_one(x, y)
        fewer = dict(x)
        del fewer[rng.choice(list(fewer))]
        answers(model, fewer)
        model.learn_one(fewer, y)
        answers(model, {})


@EACH
def test_pickling_and_copies_behave_equally(original):
    for way in (lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy, copy.copy):
        model = original.clone()
        for x, y in dataset(model, 40):
            other = way(model)
            assert type(other) is type(model) and other is not model
            assert repr(answers(other, x)) == repr(answers(model, x))
            model = other.learn_one(x, y) if random.random() < 0.5 else model.learn_one(x, y)


@EACH
def test_copies_are_independent(original):
    model = original.clone()
    for x, y in dataset(model, 60):
        model.learn_one(x, y)
    other, before = copy.deepcopy(model), model.fingerprint()
    other.learn_one(x, y)
    assert model.fingerprint() == before != other.fingerprint()


@EACH
def test_clones(original):
    model = original.clone()
    for x, y in dataset(model, 30):
        model.learn_one(x, y)
    clone = model.clone()
    assert (
        type(clone) is type(model) and clone.seen == 0 and clone.get_params() == model.get_params()
    )
    assert model._get_params() == model.get_params()
    assert model.clone({"seed": 9}).seed == 9 and model.seed == 1
    for x, y in dataset(model, 30):
        clone.learn_one(x, y)
    fresh = original.clone()
    for x, y in dataset(model, 30):
        fresh.learn_one(x, y)
    assert repr(answers(clone, x)) == repr(answers(fresh, x))


@EACH
def test_repr_and_str(original):
    assert repr(original) == str(original) and repr(original).startswith(
        type(original).__name__ + "("
    )
    for x, y in dataset(original, 3):
        original.clone().learn_one(x, y)
    assert type(original).__doc__ and inspect.getdoc(type(original).learn_one)


@EACH
def test_default_parameters_are_immutable(original):
    for parameter in inspect.signature(type(original)).parameters.values():
        assert (
            parameter.default is not inspect.Parameter.empty
            and parameter.kind is parameter.KEYWORD_ONLY
        )
        hash(parameter.default)
    type(original)()


@EACH
def test_no_state_is_hidden_in_predictions(original):
    """A model that is asked at each row is the model that never was."""
    asked, silent = original.clone(), original.clone()
    for i, (x, y) in enumerate(dataset(asked)):
        answers(asked, x)
        answers(asked, dict(x, unheard=3.0, word="unheard"))
        asked.learn_one(x, y, ts=60.0 * i)
        silent.learn_one(x, y, ts=60.0 * i)
    assert asked.fingerprint() == silent.fingerprint()
    assert asked.columns == ["number", "count", "flag", "word", "other"]


@pytest.mark.parametrize(
    "original", [m for m in MODELS if labelled(m) and not regress(m)], ids=repr
)
def test_probabilities_add_up(original):
    model = original.clone()
    for x, y in dataset(model):
        proba = model.predict_proba_one(x)
        assert all(0 <= p <= 1 for p in proba.values()) and (
            not proba or math.isclose(sum(proba.values()), 1, rel_tol=1e-9)
        )
        assert set(proba) <= {"yes", "no"}
        model.learn_one(x, y)
    assert set(model.predict_proba_one(x)) == {"yes", "no"}


@pytest.mark.parametrize(
    "truth",
    [[True, False], ["up", "down"], [3, 5], [0.0, 1.0], [np.int64(4), np.int64(9)], ["mixed", 7]],
)
def test_labels_come_back_in_their_own_type(truth):
    model = ALSVM()
    for i in range(40):
        model.learn_one({"a": i % 2 - 0.5}, truth[i % 2])
    for i in range(2):
        predicted = model.predict_one({"a": i - 0.5})
        assert predicted == truth[i] and type(predicted) is type(truth[i])
        assert set(map(type, model.predict_proba_one({"a": i - 0.5}))) == set(map(type, truth))


def test_progressive_validation():
    """River's loop: predict, then learn; accuracy well above that of the majority."""
    for kind in (ALSVM, Auto):
        model, right = kind(), []
        for x, y in dataset(model, 600):
            right.append(model.predict_one(x) == y)
            model.learn_one(x, y)
        assert np.mean(right[100:]) > 0.9


def test_mini_batches_are_rows():
    """learn_many of a DataFrame is learn_one of its rows; None, NaN and NA are missing, columns may
    come and go.
    """
    records = [dict(x, y=y) for x, y in dataset(ALSVM())]
    for kind in (ALSVM, Auto, Novelty):
        one, many = kind(), kind()
        for i, record in enumerate(records):
            x = {k: v for k, v in record.items() if k != "y"}
            if i >= 60:
                del x["count"]
            one.learn_one(x, record["y"] if labelled(one) else None, ts=float(i))
        for start, columns in (
            (0, ["number", "count", "flag", "word", "other"]),
            (60, ["number", "flag", "word", "other"]),
        ):
            frame = pd.DataFrame(records[start : start + 60])
            many.learn_many(
                frame[columns],
                frame["y"] if labelled(many) else None,
                ts=np.arange(start, start + 60, dtype=float),
            )
        assert one.fingerprint() == many.fingerprint()
    series = one.score_many(frame[columns])
    assert series.shape == (60,)


def test_series_and_frames_come_back_with_their_index():
    frame = pd.DataFrame(
        {"a": np.linspace(-1, 1, 30)}, index=pd.date_range("2026-01-01", periods=30)
    )
    model = ALSVM().learn_many(frame, pd.Series(frame["a"] > 0))
    predicted, proba = model.predict_many(frame), model.predict_proba_many(frame)
    assert predicted.index.equals(frame.index) and proba.index.equals(frame.index)
    assert list(proba.columns) == [False, True] and predicted.dtype == bool


@EACH
def test_a_dict_without_keys_is_a_row_of_zeros(original):
    model = original.clone()
    answers(model, {})
    for x, y in dataset(model, 150):
        model.learn_one({k: v for k, v in x.items() if k != "word"}, y)
    zeros = dict.fromkeys(["number", "count", "flag", "other"], 0)
    assert answers(model, {}) == answers(model, zeros)
    other = copy.deepcopy(model).learn_one({}, y, ts=9.0)
    assert other.fingerprint() == model.learn_one(zeros, y, ts=9.0).fingerprint()
    assert answers(
        original.clone().learn_many(np.ones((3, 2)), [1, 2, 1] if labelled(model) else None), {}
    )


def test_objects_are_freed_without_the_collector():
    import gc
    import weakref

    gc.collect()
    gc.disable()
    try:
        for model in (m.clone() for m in MODELS):
            x, y = next(dataset(model))
            model.learn_one(x, y)
            answers(model, {})
            if labelled(model):
                model.fit(np.ones((4, 2)), [1, 0, 1, 0])
            reference = weakref.ref(model)
            del model
            assert reference() is None
    finally:
        gc.enable()
