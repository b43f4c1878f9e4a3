"""What people do wrong at first: each mistake has an exception or a warning that names the way out,
and a warning names the caller's own line.
"""
import io
import warnings

import numpy as np
import pytest

import svmstream
from svmstream import ALSVM, Auto, Monitor, datasets, errors

LOG = b"time,host,cpu,outcome\n2025-03-01T00:00:00Z,h1,3,ok\n2025-03-01T00:01:00Z,h2,9,bad\n"


def log(**how):
    return list(datasets.rows(io.BytesIO(LOG), **how))


@pytest.mark.parametrize(
    "how",
    [
        {"label": "outcom"},
        {"label": "outcome", "ts": "t"},
        {"label": "outcome", "id": "t"},
        {"label": "outcome", "weight": "t"},
        {"label": "outcome", "categories": ["t"]},
    ],
)
def test_a_column_that_a_file_lacks_is_refused_with_those_it_has(how):
    with pytest.raises(errors.BadColumnError, match="the columns are time, host, cpu, outcome"):
        log(**how)


def test_a_column_to_leave_out_that_a_file_lacks_is_a_warning_with_those_it_has():
    with pytest.warns(UserWarning, match="no column 'hots' .* are time, host, cpu, outcome") as found:
        rows = log(label="outcome", ts="time", ignore=["hots", "cpu"])
    assert len(found) == 1 and found[0].filename == __file__
    assert rows[0][0] == {"host": "h1"}


def test_one_name_alone_is_not_its_letters():
    assert log(label="outcome", ts="time", ignore="host", categories="cpu")[1][0] == {"cpu": "9"}


def test_files_without_labels_are_read():
    assert [y for _, y in log(ignore=["time"])] == [None, None]
    assert [y for _, y in log(label="", ignore=["time"])] == [None, None]


def test_a_column_of_times_read_as_words_is_a_warning_once():
    with pytest.warns(UserWarning, match="column 'time' holds times") as found:
        rows = log(label="outcome")
    assert len(found) == 1 and found[0].filename == __file__
    assert rows[0] == ({"time": "2025-03-01T00:00:00Z", "host": "h1", "cpu": 3.0}, "ok")


@pytest.mark.parametrize("how", [{"ts": "time"}, {"ignore": ["time"]}, {"categories": ["time"]}])
def test_a_column_of_times_with_a_part_is_no_warning(how):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log(label="outcome", **how)


@pytest.mark.parametrize(
    "stream, model, text",
    [
        ([], Auto, r"give an object: Auto\(\)"),
        ("log.csv", Auto(), "datasets.rows"),
        (Auto(), [], "evaluate.stream, model"),
    ],
)
def test_evaluate_of_the_wrong_things(stream, model, text):
    with pytest.raises(errors.WrongTypeError, match=text):
        svmstream.evaluate(stream, model)


def test_evaluate_without_any_label_is_a_warning_of_the_callers_line():
    with pytest.warns(UserWarning, match="none of 2 rows has a label") as found:
        svmstream.evaluate([({"a": 1}, None), ({"a": 2}, None)], ALSVM())
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svmstream.evaluate([({"a": 1}, None), ({"a": 2}, None)], Monitor(interval=60))
        svmstream.evaluate([({"a": 1}, None), ({"a": 2}, "b")], ALSVM())


@pytest.mark.parametrize("given", [1.0, 1.5, np.float64(2), float("nan")])
def test_an_id_that_is_a_float_is_named(given):
    model = ALSVM()
    before = model.fingerprint()
    calls = [
        lambda: model.learn_one({"a": 1}, 1, id=given),
        lambda: model.learn_many([[1.0], [2.0]], [0, 1], ids=[given, given]),
        lambda: model.label(given, 1),
        lambda: model.forget(given),
    ]
    for call in calls:
        with pytest.raises(errors.BadIdError, match="float %r" % float(given)):
            call()
    assert model.fingerprint() == before


def test_times_that_are_none():
    pandas = pytest.importorskip("pandas")
    for given in (pandas.NaT, np.datetime64("NaT"), float("nan")):
        with pytest.raises(errors.NotFiniteError, match="ts is (NaT|nan)"):
            ALSVM().learn_one({"a": 1}, 1, ts=given)
    with pytest.raises(errors.WrongTypeError, match="fromisoformat"):
        ALSVM().learn_one({"a": 1}, 1, ts="2025-03-01T00:00:00Z")


def test_the_label_left_in_a_table_is_a_warning_of_the_callers_line():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "outcome": ["x", "y", "x"]})
    for learn in ("learn_many", "fit", "partial_fit"):
        with pytest.warns(UserWarning, match="in its column 'outcome'") as found:
            getattr(ALSVM(), learn)(table, table["outcome"])
        assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ALSVM().learn_many(table[["a"]], table["outcome"])
        ALSVM(task="regress").learn_many(table, table["a"].shift(-1).fillna(0))  # the next value


def test_names_and_iterators_in_place_of_rows():
    pandas = pytest.importorskip("pandas")
    times = pandas.to_datetime(["2025-03-01"] * 2, utc=True)
    table = pandas.DataFrame({"a": [1.0, 2.0], "t": times})
    with pytest.raises(errors.WrongTypeError, match=r"table\['outcome'\]"):
        ALSVM().learn_many(table[["a"]], "outcome")
    with pytest.raises(errors.WrongTypeError, match="learn_one"):
        ALSVM().learn_many(iter([[1.0]]), [1])
    with pytest.raises(errors.WrongTypeError, match="as ts="):
        ALSVM().learn_many(table, ["x", "y"])


def test_on_alert_is_a_function():
    with pytest.raises(errors.SettingError, match="on_alert is 3"):
        Monitor(on_alert=3)
