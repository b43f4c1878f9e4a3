"""Wrong inputs: each is an exception of its code with a sentence, and nothing is learned."""
import datetime
import re

import numpy as np
import pandas as pd
import pytest

from svmstream import ALSVM, Auto, Monitor, Novelty, errors

rng = np.random.default_rng(2)
X = rng.normal(size=(60, 3))
y = (X[:, 0] > 0).astype(int)
GOOD = {"a": 1.0, "b": 2, "w": "red"}
nan, inf = float("nan"), float("inf")


def named(kind=ALSVM, **options):
    model = kind(**options)
    for i in range(40):
        label = (
            {}
            if not hasattr(model, "task")
            else {"y": i % 2 if model.task == "classify" else float(i)}
        )
        model.learn_one(
            {"a": float(i % 5), "b": i % 7, "w": "red" if i % 3 else "blue"}, **label, id=i
        )
    return model


def refused(model, error, call, match=""):
    """The exception, with a sentence; the state is that of before, and the model goes on as if
    nothing had been.
    """
    before, seen, params = model.fingerprint(), model.seen, dict(vars(model))
    with pytest.raises(error, match=match) as info:
        call(model)
    assert isinstance(info.value, (errors.SvmstreamError, TypeError)) and len(str(info.value)) > 8
    if isinstance(info.value, errors.SvmstreamError):
        assert re.fullmatch("[a-z_]+", info.value.code)
    assert model.fingerprint() == before and model.seen == seen and vars(model) == params


ROWS = [
    ({"a": nan}, errors.NotFiniteError, "a is NaN"),
    ({"a": inf}, errors.NotFiniteError, "a"),
    ({"a": -inf, "b": inf}, errors.NotFiniteError, "infinite"),
    ({"a": 10**400}, errors.NotFiniteError, "a"),
    ({"a": np.float32("nan")}, errors.NotFiniteError, "a"),
    ({"a": "word"}, errors.WrongTypeError, "a"),
    ({"a": b"1"}, errors.WrongTypeError, "bytes"),
    ({"a": 1j}, errors.WrongTypeError, "complex"),
    ({"a": [1]}, errors.WrongTypeError, "list"),
    ({"a": {"b": 1}}, errors.WrongTypeError, "dict"),
    ({"a": np.array([1.0, 2.0])}, errors.WrongTypeError, "ndarray"),
    ({"a": object()}, errors.WrongTypeError, "object"),
    ({"a": datetime.datetime.now()}, errors.WrongTypeError, "ts="),
    ({"a": np.datetime64("2020-01-01")}, errors.WrongTypeError, "ts="),
    ({"a": np.datetime64(1, "ns")}, errors.WrongTypeError, "ts="),
    ({"a": np.timedelta64(1, "ns")}, errors.WrongTypeError, "timedelta64"),
    ({None: 1}, errors.BadColumnError, "NoneType"),
    ({("a", 1): 1}, errors.BadColumnError, "tuple"),
    ({1.5: 1}, errors.BadColumnError, "float"),
    ({"x" * 65: 1}, errors.BadColumnError, ""),
    ({"": 1}, errors.BadColumnError, ""),
    ({"a\0b": 1}, errors.BadColumnError, "NUL"),
    ({"\ud800": 1}, errors.BadColumnError, "Unicode"),
    ({"w": "a\0b"}, errors.BadColumnError, "NUL"),
    ({"1": 1, 1: 2}, errors.DuplicateKeyError, "1"),
    ([1.0, 2.0, 3.0], errors.WrongKindError, ""),
    (np.ones(3), errors.WrongKindError, ""),
    (np.ones((1, 3)), errors.WrongDimensionError, "dimension"),
    ("text", errors.WrongTypeError, "str"),
    (None, errors.WrongTypeError, "NoneType"),
    (7, errors.WrongTypeError, "int"),
]


@pytest.mark.parametrize("x, error, match", ROWS)
@pytest.mark.parametrize("kind", [ALSVM, Auto, Novelty])
def test_rows(kind, x, error, match):
    model = named(kind)
    label = 1 if hasattr(model, "task") else None
    refused(model, error, lambda m: m.learn_one(x, label), match)
    refused(model, error, lambda m: m.step(x, label, w=2.0), match)
    if error is not errors.DuplicateKeyError and not (isinstance(x, dict) and "w" in x):
        refused(
            model, error, lambda m: m.score_one(x) if kind is Novelty else m.predict_one(x), match
        )
    twin = named(kind)
    for m in (model, twin):
        m.learn_one(GOOD, label)
    assert model.seen == twin.seen == 41


@pytest.mark.parametrize(
    "label, error",
    [
        (nan, errors.BadLabelError),
        (inf, errors.BadLabelError),
        (1.5, errors.BadLabelError),
        (2**70, errors.InputError),
        ("", errors.BadLabelError),
        ("x" * 65, errors.BadLabelError),
        ("\ud800", errors.InputError),
        (b"b", errors.WrongTypeError),
        ([1], errors.WrongTypeError),
        ({"a": 1}, errors.WrongTypeError),
        (object(), errors.WrongTypeError),
        (np.array([1, 2]), errors.WrongTypeError),
        (1j, errors.WrongTypeError),
        ((1, [2]), errors.WrongTypeError),
    ],
)
def test_labels(label, error):
    for kind in (ALSVM, Auto):
        model = named(kind)
        refused(model, error, lambda m: m.learn_one(GOOD, label))
        refused(model, (error, errors.UnknownIdError), lambda m: m.label(3, label))
        assert sorted(model.classes_) == [0, 1]
        refused(
            ALSVM().partial_fit(X, y), errors.InputError, lambda m: m.partial_fit(X[:2], [1, label])
        )


@pytest.mark.parametrize(
    "label", ["1", b"1", nan, inf, [1], None.__class__, 1j, np.array([1.0, 2.0])]
)
def test_targets(label):
    model = named(ALSVM, task="regress")
    refused(model, errors.InputError, lambda m: m.learn_one(GOOD, label))
    plain = ALSVM(task="regress").partial_fit(X, X[:, 0])
    refused(plain, errors.InputError, lambda m: m.partial_fit(X[:2], [1.0, label]))


@pytest.mark.parametrize(
    "arguments, error",
    [
        ({"w": -1.0}, errors.BadWeightError),
        ({"w": nan}, errors.BadWeightError),
        ({"w": inf}, errors.BadWeightError),
        ({"w": "1x"}, errors.BadWeightError),
        ({"id": 1.5}, errors.BadIdError),
        ({"id": "x" * 65}, errors.BadIdError),
        ({"id": ""}, errors.BadIdError),
        ({"id": b"x"}, errors.BadIdError),
        ({"id": 2**70}, errors.BadIdError),
        ({"ts": nan}, errors.NotFiniteError),
        ({"ts": "yesterday"}, errors.WrongTypeError),
        ({"ts": 1e15}, errors.TimeAheadError),
        ({"ts": [1]}, errors.WrongTypeError),
        ({"ts": np.datetime64("NaT")}, errors.NotFiniteError),
        ({"ts": pd.NaT}, errors.NotFiniteError),
    ],
)
def test_weights_ids_and_times(arguments, error):
    model = named()
    refused(model, error, lambda m: m.learn_one(GOOD, 1, **arguments))
    refused(model, error, lambda m: m.step(GOOD, 1, **arguments))
    model.learn_one(GOOD, 1)  # nothing of them stays behind
    assert model.seen == 41 and model.forget(39) == 1


def spoiled(value, dtype=float):
    Z = X.astype(dtype)
    Z[31, 2] = value
    return Z


MATRICES = [
    (spoiled(nan), errors.NotFiniteError, "row 31, column 2"),
    (spoiled(inf), errors.NotFiniteError, "row 31, column 2"),
    (spoiled(-inf, np.float32), errors.NotFiniteError, "row 31, column 2"),
    (spoiled(nan, np.float32), errors.NotFiniteError, ""),
    (spoiled(nan, object), errors.NotFiniteError, "NaN"),
    (spoiled("word", object), errors.WrongTypeError, "word"),
    (spoiled("1.5", object), errors.WrongTypeError, "1.5"),
    (spoiled(None, object), errors.NotFiniteError, ""),
    (spoiled({}, object), errors.WrongTypeError, "dict"),
    (X.astype(str), errors.WrongTypeError, "<U"),
    (X.astype("S"), errors.WrongTypeError, ""),
    (X + 1j, errors.WrongTypeError, "Complex"),
    (X[:, :2], errors.WrongDimensionError, "expecting 3 features"),
    (np.hstack([X, X]), errors.WrongDimensionError, "6 features"),
    (X[0], errors.WrongDimensionError, "Reshape"),
    (X[None], errors.WrongDimensionError, "3D"),
    (np.float64(1), errors.WrongDimensionError, ""),
    ([[1, 2, 3]] * 59 + [[1, 2]], errors.WrongDimensionError, "length"),
    ([[1, 2, "x"]] * 60, errors.WrongTypeError, ""),
    (X[:0], errors.MissingXError, "0 sample"),
    (np.empty((60, 0)), errors.MissingXError, "0 feature"),
    ([GOOD] * 60, errors.WrongTypeError, "learn_one"),
    ({"a": [1]}, errors.WrongTypeError, ""),
    (None, errors.WrongTypeError, "X is a NoneType"),
    ("text", errors.WrongTypeError, "X is a str"),
    ({1, 2}, errors.WrongTypeError, "X is a set"),
    (np.ma.masked_array(X, X > 1), errors.MissingValueError, "masked"),
    (spoiled(pd.NA, object), errors.NotFiniteError, "row 31, column 2"),
    (pd.DataFrame({"a": [np.ones(2)] * 60}), errors.WrongTypeError, "the column a holds"),
    (X.astype("M8[s]"), errors.WrongTypeError, "datetime"),
]


@pytest.mark.parametrize("Z, error, match", MATRICES)
@pytest.mark.parametrize("kind", [ALSVM, Auto])
def test_matrices(kind, Z, error, match):
    model = kind().partial_fit(X, y)
    refused(model, error, lambda m: m.partial_fit(Z, y), match)
    refused(model, error, lambda m: m.learn_many(Z, y), match)
    for name in ("predict", "predict_proba", "decision_function", "predict_many"):
        refused(model, error, lambda m: getattr(m, name)(Z), match)
    if error is not errors.WrongDimensionError or "features" not in match:
        refused(model, error, lambda m: m.fit(Z, y), match)
    assert model.n_features_in_ == 3
    novelty = Novelty().learn_many(X)
    refused(novelty, error, lambda m: m.learn_many(Z))
    refused(novelty, error, lambda m: m.score_many(Z))


@pytest.mark.parametrize(
    "arguments, error",
    [
        ({"y": y[:59]}, errors.WrongDimensionError),
        ({"y": np.ones((60, 2))}, errors.WrongDimensionError),
        ({"y": None}, errors.BadLabelError),
        ({"y": y + 0.5}, errors.BadLabelError),
        ({"y": 5}, errors.InputError),
        ({"y": np.where(y, nan, 1.0)}, errors.BadLabelError),
        ({"y": y.astype("M8[s]")}, errors.WrongTypeError),
        ({"y": y.astype(complex)}, errors.WrongTypeError),
        ({"y": np.arange(60) + 7, "classes": [0, 1]}, errors.BadLabelError),
        ({"y": y + 1, "classes": [0, 1]}, errors.BadLabelError),
        ({"y": y, "classes": [1, 2]}, errors.BadLabelError),
        ({"y": y, "classes": [0.5, 1]}, errors.BadLabelError),
        ({"y": y, "sample_weight": [1.0] * 59}, errors.BadWeightError),
        ({"y": y, "sample_weight": np.ones((60, 2))}, errors.BadWeightError),
        ({"y": y, "sample_weight": -np.ones(60)}, errors.BadWeightError),
        ({"y": y, "sample_weight": ["a"] * 60}, errors.BadWeightError),
        ({"y": y, "sample_weight": np.full(60, nan)}, errors.BadWeightError),
        ({"y": np.arange(60)}, errors.LimitError),
    ],
)
def test_what_comes_with_a_matrix(arguments, error):
    model = ALSVM(settings={"max.classes": 10}).partial_fit(X, y)
    refused(model, error, lambda m: m.partial_fit(X, **arguments))
    assert model.classes_.tolist() == [0, 1] and model.partial_fit(X, y + 2).classes_.tolist() == [
        0,
        1,
        2,
        3,
    ]
    if "classes" not in arguments:
        refused(
            ALSVM(settings={"max.classes": 10}).partial_fit(X, y),
            error,
            lambda m: m.fit(X, **arguments),
        )


def test_declared_classes_stay():
    model = ALSVM().partial_fit(X, y, classes=[0, 1])
    refused(
        model,
        errors.BadLabelError,
        lambda m: m.partial_fit(X, y, classes=[0, 1, 2]),
        "not the same as on last call",
    )
    refused(model, errors.BadLabelError, lambda m: m.partial_fit(X, y + 1), "2")
    refused(model, errors.BadLabelError, lambda m: m.learn_one(X[0].tolist(), 2), "2")
    refused(
        ALSVM(task="regress"),
        errors.BadLabelError,
        lambda m: m.partial_fit(X, X[:, 0], classes=[1, 2]),
    )
    refused(model, errors.WrongTypeError, lambda m: m.learn_one(X[0].tolist(), y[:2]), "ndarray")
    for classes in ([None, 1], [np.nan, 1], [pd.NA], [[0], [1]], [0.5, 1], "ab", [], 3):
        refused(ALSVM(), errors.InputError, lambda m: m.partial_fit(X, y, classes=classes))
    assert ALSVM().partial_fit(X, y, classes={0, 1}).classes_.tolist() == [0, 1]


def test_missing_labels_of_arrays():
    labels = pd.array([pd.NA, *y[1:]], dtype="Int64")
    model = ALSVM().partial_fit(X, y)
    refused(model, errors.BadLabelError, lambda m: m.partial_fit(X, labels), "None is no label")
    masked = np.ma.masked_array(y, y == 1)
    refused(model, errors.MissingValueError, lambda m: m.partial_fit(X, masked), "masked")


def test_ids_and_times_of_blocks():
    model = ALSVM().partial_fit(X, y)
    for arguments, error in (
        ({"ids": [1]}, errors.BadIdError),
        ({"ids": [1.5] * 60}, errors.BadIdError),
        ({"ids": ["x" * 65] * 60}, errors.BadIdError),
        ({"ts": [1.0]}, errors.WrongTypeError),
        ({"ts": ["x"] * 60}, errors.WrongTypeError),
        ({"ts": np.full(60, nan)}, errors.NotFiniteError),
        ({"ts": np.r_[np.ones(59), 1e15]}, errors.TimeAheadError),
    ):
        refused(model, error, lambda m: m.learn_many(X, y, **arguments))


def test_frames():
    frame = pd.DataFrame(X, columns=list("abc"))
    model = ALSVM().learn_many(frame, y)
    for wrong, error in (
        (frame.assign(a=inf), errors.NotFiniteError),
        (frame.assign(a="word"), errors.WrongTypeError),
        (frame.assign(d=pd.Timestamp("2026-01-01")), errors.WrongTypeError),
        (frame.assign(a=1j), errors.WrongTypeError),
        (frame.assign(a=[b"x"] * 60), errors.WrongTypeError),
        (frame.iloc[:0], errors.MissingXError),
        (pd.concat([frame, frame], axis=1), errors.DuplicateKeyError),
        (frame.rename(columns={"a": "x" * 65}), errors.InputError),
        (frame.rename(columns={"a": 1.5}), errors.BadColumnError),
        (frame.assign(a=[[1]] * 60), errors.WrongTypeError),
    ):
        labels = y[: len(wrong)]
        refused(model, error, lambda m: m.learn_many(wrong, labels))
        assert model.columns == list("abc")


@pytest.mark.parametrize(
    "make, match",
    [
        (lambda: ALSVM(C=-1.0), "C"),
        (lambda: ALSVM(C="much"), "C"),
        (lambda: ALSVM(window=-1), "window"),
        (lambda: ALSVM(task="rank"), "task"),
        (lambda: ALSVM(scale="minmax"), "scale"),
        (lambda: ALSVM(forgetting=2.0), "forget"),
        (lambda: ALSVM(missing="guess"), "missing"),
        (lambda: ALSVM(class_weight={1: -2.0}), "class.weight"),
        (lambda: ALSVM(class_weight={"a,b": 2.0}), "a,b"),
        (lambda: ALSVM(class_weight=[1, 2]), "class_weight"),
        (lambda: ALSVM(class_weight={1.5: 2.0}), "1.5"),
        (lambda: ALSVM(class_weight="even"), "class.weight"),
        (lambda: Auto(prices={(1, 2, 3): 1.0}), "prices"),
        (lambda: Auto(prices={1: "dear"}), "prices"),
        (lambda: Auto(prices=[1]), "prices"),
        (lambda: Auto(max_classes=1), "max.classes"),
        (lambda: Auto(labels_ttl=-1), "labels.ttl"),
        (lambda: Auto(seed=-1), "seed"),
        (lambda: Auto(categories=["a,b"]), "comma"),
        (lambda: Auto(settings={"windw": 3}), "window"),
        (lambda: Auto(settings={"C": 3}), "C"),
        (lambda: Auto(settings=[("a", 1)]), "dict"),
        (lambda: Auto(settings={"key": "k"}), "key"),
        (lambda: Auto(settings={"task": "regress"}), "task="),
        (lambda: Auto(settings={"out": "tcp://*:1"}), "out"),
        (lambda: Auto(settings={3: 4}), "name"),
        (lambda: Auto(settings={"interval": object()}), "interval"),
        (lambda: Novelty(gamma="wide"), "gamma"),
        (lambda: Novelty(trim=0.9), "trim"),
        (lambda: Novelty(window=-1), "window"),
        (lambda: Monitor(budget="often"), "budget"),
        (lambda: Monitor(rules=["beyond", "late"]), "late"),
        (lambda: Monitor(limits={"a": 5}), "limits"),
        (lambda: Monitor(limits={"a": (None, None)}), "limits"),
        (lambda: Monitor(limits={"a": (5, 1)}), "limits"),
        (lambda: Monitor(limits={"a": ("x", 1)}), "limits"),
        (lambda: Monitor(interval=-5), "interval"),
    ],
)
def test_parameters(make, match):
    with pytest.raises(errors.SvmstreamError, match=re.escape(match)) as info:
        make()
    assert isinstance(info.value, ValueError)


def test_unknown_parameters_are_a_type_error():
    for kind in (ALSVM, Auto, Novelty, Monitor):
        with pytest.raises(TypeError):
            kind(windw=3)


def test_missing_values_can_be_refused_or_dropped():
    model = named(missing="refuse")
    refused(model, errors.MissingValueError, lambda m: m.learn_one({"a": None, "b": 1}, 1))
    dropping = ALSVM(missing="drop").partial_fit(X, y)
    assert dropping.partial_fit(spoiled(nan), y).seen == 119
    with pytest.raises(errors.MissingValueError, match="row 31"):
        dropping.predict(spoiled(nan))
    with pytest.raises(errors.MissingValueError):
        dropping.predict_one([1.0, nan, 2.0])


def test_a_refusal_leaves_no_trace_in_later_results():
    clean, tried = ALSVM(), ALSVM()
    for i, (row, label) in enumerate(zip(X.tolist(), y.tolist())):
        clean.learn_one(dict(zip("abc", row)), label, ts=float(i))
        for wrong, what in (
            ({"a": nan}, 1),
            (dict(zip("abc", row)), "x" * 65),
            ({"a": "word", "z": 1}, 1),
            ([1.0], 1),
        ):
            with pytest.raises(errors.InputError):
                tried.learn_one(wrong, what, ts=float(i))
                if i == 0:
                    raise errors.InputError
        if i == 0:
            tried = ALSVM()
        tried.learn_one(dict(zip("abc", row)), label, ts=float(i))
    assert clean.fingerprint() == tried.fingerprint() and tried.columns == ["a", "b", "c"]
