"""Rows as users have them: dicts, sequences, arrays of any layout, DataFrames; what is equal gives
equal bits.
"""
import datetime
import decimal
import time
import types

import numpy as np
import pandas as pd
import pytest

from svmstream import ALSVM, Auto, _packing, _rows, errors, wire
from svmstream._library import ffi

rng = np.random.default_rng(7)
X = rng.normal(size=(300, 4))
y = np.where(X[:, 0] + 0.5 * X[:, 1] > 0, "up", "down")
NAMES = ["a", "b", "c", "d"]


def times(n=len(X)):
    return np.arange(n) * 60.0 + 1.7e9


def rows():
    return [dict(zip(NAMES, map(float, r))) for r in X]


def learned(given, model=None):
    """A model that learned rows one by one, at given times: its state depends on nothing else."""
    model = model or ALSVM()
    for x, label, ts in zip(given, y, times()):
        model.learn_one(x, str(label), ts=ts)
    return model


@pytest.mark.parametrize(
    "make",
    [
        lambda r: {k: np.float64(v) for k, v in r.items()},
        lambda r: {k: decimal.Decimal(v) for k, v in r.items()},
        lambda r: {np.str_(k): v for k, v in r.items()},
        lambda r: types.MappingProxyType(r),
        lambda r: pd.Series(r),
    ],
)
def test_kinds_of_rows_give_the_same_bits(make):
    assert learned(map(make, rows())).fingerprint() == learned(rows()).fingerprint()


def test_ints_bools_and_numpy_scalars_are_numbers():
    one, two = ALSVM(), ALSVM()
    for i in range(50):
        one.learn_one({"n": i % 5, "b": i % 3 == 0, "f": float(i)}, i % 2, ts=i)
        two.learn_one(
            {"n": np.int16(i % 5), "b": np.bool_(i % 3 == 0), "f": np.float32(i)},
            np.int8(i % 2),
            ts=i,
        )
    assert one.fingerprint() == two.fingerprint()


def test_after_the_first_row_the_order_of_keys_does_not_matter():
    given = rows()
    shuffled = given[:1] + [
        dict(sorted(r.items(), key=lambda kv: hash((i, kv[0])))) for i, r in enumerate(given[1:])
    ]
    assert any(list(r) != NAMES for r in shuffled)
    for kind in (ALSVM, Auto):
        assert learned(shuffled, kind()).fingerprint() == learned(given, kind()).fingerprint()


@pytest.mark.parametrize(
    "layout",
    [
        lambda a: np.asfortranarray(a),
        lambda a: a.tolist(),
        lambda a: tuple(map(tuple, a)),
        lambda a: a.astype(object),
        lambda a: np.hstack([a, a])[:, :4],
        lambda a: np.repeat(a, 2, axis=0)[::2],
        lambda a: a[:, ::-1].copy()[:, ::-1],
        lambda a: a.astype(">f8"),
        lambda a: a.astype(np.longdouble),
        lambda a: np.lib.stride_tricks.as_strided(a),
    ],
)
def test_layouts_of_arrays_give_the_same_bits(layout):
    a = ALSVM().learn_many(X, y, ts=times())
    b = ALSVM().learn_many(layout(X), y, ts=times())
    assert a.fingerprint() == b.fingerprint() == learned(X.tolist()).fingerprint()
    assert np.array_equal(a.decision_function(X), b.decision_function(layout(X)))


def test_float32_and_integers():
    small = X.astype(np.float32)
    assert (
        ALSVM().learn_many(small, y, ts=times()).fingerprint()
        == ALSVM().learn_many(small.astype(float), y, ts=times()).fingerprint()
    )
    whole = (X * 10).astype(np.int32)
    assert (
        ALSVM().learn_many(whole, y, ts=times()).fingerprint()
        == ALSVM().learn_many(whole.astype(float), y, ts=times()).fingerprint()
    )


def test_arrays_are_read_in_place():
    from svmstream import _matrix

    for a in (X, X.astype(np.float32), X[:, :2], X[::3]):
        assert np.shares_memory(_matrix.matrix(a, False).x, a)
    assert X.flags.writeable
    frozen = X.copy()
    frozen.flags.writeable = False
    ALSVM().partial_fit(frozen, y).predict(frozen)


def test_blocks_of_any_size_are_the_same_rows():
    whole = ALSVM().learn_many(X, y, ts=times())
    parts = ALSVM()
    for i in range(0, 300, 77):
        parts.learn_many(X[i : i + 77], y[i : i + 77], ts=times()[i : i + 77])
    assert whole.fingerprint() == parts.fingerprint()


def test_a_frame_is_its_rows():
    frame = pd.DataFrame(X, columns=NAMES)
    a = ALSVM().learn_many(frame, pd.Series(y), ts=times())
    assert a.fingerprint() == learned(rows()).fingerprint()
    assert list(a.predict_many(frame).index) == list(frame.index)
    assert list(a.predict_many(frame)) == [a.predict_one(r) for r in rows()]
    proba = a.predict_proba_many(frame)
    assert list(proba.columns) == ["down", "up"]
    assert proba.iloc[3].to_dict() == pytest.approx(a.predict_proba_one(rows()[3]), rel=1e-9)


def mixed():
    frame = pd.DataFrame(
        {
            "n": X[:, 0],
            "word": ["red", "green", "blue"] * 100,
            "flag": X[:, 1] > 0,
            "kind": pd.Categorical(["x", "y"] * 150),
            "whole": pd.array([1, 2, None] * 100, "Int64"),
        }
    )
    frame.loc[5, "n"] = np.nan
    frame.loc[7, "word"] = None
    return frame


def test_a_frame_with_words_and_missing_values_is_its_dicts():
    frame = mixed()
    one = Auto()
    for record, label, ts in zip(frame.to_dict("records"), y, times()):
        one.learn_one(
            {k: None if v is None or v is pd.NA or v != v else v for k, v in record.items()},
            str(label),
            ts=ts,
        )
    many = Auto().learn_many(frame, y, ts=times())
    assert many.fingerprint() == one.fingerprint()
    assert (
        many.features[:4] == ["n", "word=red", "word=green", "word=blue"]
        or "word=red" in many.features
    )
    assert list(many.predict_many(frame)[:5]) == [
        many.predict_one(
            {k: None if v is None or v is pd.NA or v != v else v for k, v in r.items()}
        )
        for r in frame.to_dict("records")[:5]
    ]


def test_a_frame_is_learned_as_a_whole_or_not_at_all():
    model = Auto(settings={"categories.max": 3}).learn_many(mixed(), y, ts=times())
    before, seen = model.fingerprint(), model.seen
    wrong = mixed()
    wrong["n"] = wrong["n"].astype(object)
    wrong.loc[299, "n"] = "a word in a column of numbers"
    with pytest.raises(errors.WrongTypeError, match="row 299"):
        model.learn_many(wrong, y, ts=times() + 1e5)
    assert model.fingerprint() == before and model.seen == seen
    model.learn_many(mixed(), y, ts=times() + 1e5)
    assert model.seen == seen + 300


def test_numbers_without_names_of_columns():
    frame = pd.DataFrame(X)
    assert (
        ALSVM().learn_many(frame, y, ts=times()).fingerprint()
        == ALSVM().learn_many(X, y, ts=times()).fingerprint()
    )


def test_none_is_missing_and_an_absent_key_is_zero():
    models = [ALSVM(), ALSVM(), ALSVM()]
    for i, r in enumerate(rows()[:100]):
        absent, none, zero = dict(r), dict(r), dict(r)
        if i % 4 == 3:
            del absent["b"]
            none["b"], zero["b"] = None, 0.0
        for model, row in zip(models, (absent, none, zero)):
            model.learn_one(row, str(y[i]), ts=i)
    absent, none, zero = models
    assert absent.fingerprint() == zero.fingerprint() != none.fingerprint()
    assert none.figures()["filled_missing"] == 25


def test_nan_where_missing_says_what_it_means():
    holed = X.copy()
    holed[3, 1] = np.nan
    a = ALSVM(missing="mean").learn_many(holed, y, ts=times())
    b = ALSVM()
    for i, row in enumerate(rows()):
        b.learn_one({**row, "b": None} if i == 3 else row, str(y[i]), ts=times()[i])
    c = ALSVM(missing="mean")
    for i, row in enumerate(holed.tolist()):
        c.learn_one(
            [None if v != v else v for v in row] if i % 2 else row, str(y[i]), ts=times()[i]
        )
    assert np.array_equal(a.coef_, b.coef_) and a.fingerprint() == c.fingerprint()
    with pytest.raises(errors.NotFiniteError, match="row 3, column 1"):
        ALSVM().learn_many(holed, y)


def test_times_of_any_kind_are_the_same_second():
    stamp = datetime.datetime(2026, 11, 27, 8, 30, tzinfo=datetime.timezone.utc)
    kinds = [
        stamp.timestamp(),
        stamp,
        stamp.replace(tzinfo=None),
        np.datetime64("2026-11-27T08:30:00"),
        pd.Timestamp(stamp),
        stamp.astimezone(datetime.timezone(datetime.timedelta(hours=5))),
    ]
    prints = {
        ALSVM(settings={"ts.ahead": 1e9}).learn_one({"a": 1.0}, 1, ts=ts).fingerprint()
        for ts in kinds
    }
    assert len(prints) == 1
    column = pd.Series(pd.to_datetime(times(), unit="s"))
    assert (
        ALSVM().learn_many(X, y, ts=column).fingerprint()
        == ALSVM().learn_many(X, y, ts=times()).fingerprint()
    )


def test_many_different_keys():
    """Bags of words: each row has other keys. Prepared rows are bounded."""
    from svmstream import _rows

    model = ALSVM(window=100)
    for i in range(2 * _rows.MAX_SHAPES):
        model.learn_one(
            {"w%d" % (i % 37): 1, "w%d" % (i * 7 % 41): 2.0, "v%d" % (i % 29): 1}, i % 2
        )
    assert len(model._rows.shapes) <= _rows.MAX_SHAPES
    assert model.n_features_in_ == len(model.columns) == 41 + 29


def test_weights_of_zero_are_passed_over():
    w = np.ones(300)
    w[::3] = 0
    keep = w > 0
    a = ALSVM().learn_many(X, y, w=w, ts=times())
    b = ALSVM().learn_many(X[keep], y[keep], ts=times()[keep])
    c = ALSVM()
    for x, label, weight, ts in zip(X.tolist(), y.tolist(), w, times()):
        c.learn_one(x, label, w=weight, ts=ts)
    assert a.seen == b.seen == c.seen == 200
    assert np.array_equal(a.coef_, b.coef_) and np.array_equal(a.coef_, c.coef_)


def test_names_and_words_outlive_the_cache_of_strings(monkeypatch):
    """The cache is emptied within a row; memory that is freed is used again at once."""
    monkeypatch.setattr(_rows, "MAX_TEXTS", 5)
    made = _rows.Rows(False)
    for i in range(300):
        x = {"alpha": 1.0, "user": "u%d" % (i % 97), "zeta": 1.0, "city": "c%d" % (i % 89)}
        if i % 5 == 0:
            x["k%d" % i] = "v"
        shape = made.row(x)
        reused = [ffi.new("char[]", b"#" * size) for size in range(1, 40) for _ in range(9)]
        names = [ffi.string(shape.row.names[j]).decode() for j in range(len(x))]
        words = [shape.row.words[j] for j in range(len(x))]
        found = [ffi.string(w).decode() if w else None for w in words]
        assert names == list(x)
        assert found == [v if isinstance(v, str) else None for v in x.values()]
        assert len(reused) > 300


def test_more_words_than_the_cache_holds():
    model = ALSVM()
    for i in range(_rows.MAX_TEXTS + 1000):
        model.learn_one({"a": float(i % 7), "user": "w%d" % i, "b": 1.0, "c": "x"}, i % 2)
    assert model.columns == ["a", "user", "b", "c"]


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", "object"])
def test_rows_of_a_frame_with_missing_values(dtype):
    """A Series with NA is the dict with None."""
    frame = pd.DataFrame({"a": pd.array([1, None, 0], dtype=dtype), "b": [1.0, 2.0, np.nan]})
    a, b = ALSVM(), ALSVM()
    for i, (_, row) in enumerate(frame.iterrows()):
        a.learn_one(row, i % 2, ts=i)
        cells = {k: None if pd.isna(v) else v for k, v in row.items()}
        b.learn_one(cells, i % 2, ts=i)
    assert a.fingerprint() == b.fingerprint()


def test_masked_values_are_missing():
    masked = np.ma.masked_array(X, X > 2)
    assert masked.mask.any()
    with pytest.raises(errors.MissingValueError, match="masked"):
        ALSVM().fit(masked, y)
    holes = np.where(X > 2, np.nan, X)
    for given in (masked, holes.astype(object), np.where(X > 2, pd.NA, X)):
        model = ALSVM(missing="mean").learn_many(given, y, ts=times())
        expected = ALSVM(missing="mean").learn_many(holes, y, ts=times())
        assert model.fingerprint() == expected.fingerprint()
    plain = np.ma.masked_array(X, np.zeros(X.shape, bool))
    assert np.array_equal(ALSVM().fit(plain, y).predict(plain), ALSVM().fit(X, y).predict(X))


def test_a_time_without_zone_is_utc(monkeypatch):
    """For learners and for rows that are sent to a process, wherever the machine is."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        naive = datetime.datetime(2026, 11, 27, 8, 30)
        for stamp in (naive, pd.Timestamp(naive), np.datetime64(naive)):
            assert _rows.seconds(stamp) == 1795768200.0
            assert wire.unpack(_packing.RowPacker().row([1.0], ts=stamp))["ts"] == 1795768200.0
    finally:
        monkeypatch.undo()
        time.tzset()
