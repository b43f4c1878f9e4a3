"""Evaluation: the figures of any model by their definitions, the curve, the plot; of the learners
of the package, the program's table.
"""
import gzip
import html
import math
import random
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

import svmstream
from svmstream import datasets, errors, evaluate
from svmstream.evaluation import Point

SVG = "{http://www.w3.org/2000/svg}"


class Last:
    """Predicts the label of the row before."""

    def __init__(self):
        self.last = None
        self.weights = []

    def predict_one(self, x):
        return self.last

    def learn_one(self, x, y, w=1.0):
        self.last = y
        self.weights.append(w)


class Classifier(Last):
    pass


class Regressor(Last):
    pass


def labels(n=1000, seed=2):
    rng = random.Random(seed)
    return [rng.choice("aabc") for _ in range(n)]


def by_definition(truth, guesses):
    """accuracy, kappa and balanced accuracy from the lists alone."""
    n, classes = len(truth), sorted(set(truth))
    right = sum(t == g for t, g in zip(truth, guesses)) / n
    chance = sum((truth.count(c) / n) * (guesses.count(c) / n) for c in classes)
    recalls = [sum(t == g == c for t, g in zip(truth, guesses)) / truth.count(c) for c in classes]
    return right, (right - chance) / (1 - chance), sum(recalls) / len(recalls)


def test_figures_of_a_classifier():
    y = labels()
    result = evaluate(((None, c) for c in y), Last())
    right, kappa, balanced = by_definition(y, [None] + y[:-1])
    f = result.figures
    assert f["rows"] == f["labelled"] == result.rows == 1000 and f["unpredicted"] == 1
    assert f["accuracy"] == f["accuracy_no_change"] == pytest.approx(right, abs=1e-12)
    assert f["kappa"] == pytest.approx(kappa, abs=1e-12) and f[
        "balanced_accuracy"
    ] == pytest.approx(balanced, abs=1e-12)
    assert f["kappa_t"] == 0
    seen, hits = [], 0
    for c in y:
        hits += bool(seen) and max(dict.fromkeys(seen), key=seen.count) == c
        seen.append(c)
    assert f["accuracy_majority"] == pytest.approx(hits / 1000, abs=1e-12)


def test_figures_of_a_regression():
    rng = random.Random(3)
    y = [rng.gauss(5, 2) for _ in range(500)]
    f = evaluate(((None, v) for v in y), Regressor()).figures
    off = [a - b for a, b in zip(y, [0.0] + y[:-1])]
    assert (
        f["rmse"] == f["rmse_no_change"] == pytest.approx(math.sqrt(sum(d * d for d in off) / 500))
    )
    assert f["mae"] == pytest.approx(sum(map(abs, off)) / 500)
    means = [sum(y[:i]) / i if i else 0.0 for i in range(500)]
    assert f["rmse_mean"] == pytest.approx(
        math.sqrt(sum((a - m) ** 2 for a, m in zip(y, means)) / 500)
    )


@pytest.mark.parametrize(
    "model, task, y, name",
    [
        (Classifier(), None, [0.5, 1.5], "accuracy"),
        (Regressor(), None, [1, 2], "rmse"),
        (Last(), None, [1, 2], "accuracy"),
        (Last(), None, [1.5, 2], "rmse"),
        (Last(), "regress", [1, 2], "rmse"),
        (Last(), "classify", [0.5, 1.5], "accuracy"),
    ],
)
def test_the_task(model, task, y, name):
    assert name in evaluate([({}, v) for v in y], model, task=task).figures


def test_a_pipeline_is_what_its_last_step_is():
    class Pipeline(Last):
        steps = {"scale": object(), "model": Regressor()}

    assert "rmse" in evaluate([({}, 1), ({}, 2)], Pipeline()).figures


def test_labels_that_are_absent_and_weights():
    model = Last()
    result = evaluate([({}, "a", {"w": 2.0, "ts": 7.0}), ({}, None), ({}, "a", {})], model)
    assert result.figures["labelled"] == 2 and result.rows == 3 and model.weights == [2.0, 1.0]
    nothing = evaluate([], Last())
    assert (
        nothing.rows == 0
        and nothing.curve == []
        and "nan" in nothing.table
        and "<svg" not in nothing._repr_html_()
    )


@pytest.mark.parametrize("rows", [0, 1, 399, 400, 401, 5000])
def test_the_curve_has_every_row_once(rows):
    y = labels(rows)
    result = evaluate(((None, c) for c in y), Last())
    curve = result.curve
    assert (
        len(curve) <= 400
        and [p.row for p in curve] == sorted({p.row for p in curve})
        and (not rows or curve[-1].row == rows)
    )
    hits = sum((p.row - before) * p.model for p, before in zip(curve, [0] + [p.row for p in curve]))
    assert hits == pytest.approx(rows and rows * result.figures["accuracy"])


def test_points_at_every_n_rows():
    curve = evaluate(((None, c) for c in labels(1050)), Last(), every=100).curve
    assert [p.row for p in curve] == [*range(100, 1001, 100), 1050]
    assert all(
        isinstance(p, Point) and p.surprise is None and p.model == p.no_change for p in curve
    )


def test_the_limit_reads_no_further():
    stream = iter([({}, 1)] * 10)
    assert evaluate(stream, Last(), limit=4).rows == 4 and len(list(stream)) == 6


@pytest.mark.parametrize("element", [7, (1,), (1, 2, 3), (1, 2, {}, 4), None])
def test_elements_that_are_no_rows(element):
    with pytest.raises(errors.WrongTypeError, match=r"row 2 of the stream .* must be \(x, y\)"):
        evaluate([({}, 1), element], Last())


def test_wrong_arguments():
    with pytest.raises(errors.WrongTypeError, match="object has no predict_one"):
        evaluate([], object())
    with pytest.raises(ValueError, match="every"):
        evaluate([], Last(), every=0)
    with pytest.raises(ValueError, match="task"):
        evaluate([], Last(), task="cluster")


# ---- the plot


class Alert:
    def __init__(self, text, severity):
        self.text, self.severity = text, severity


class Novel(Last):
    """What a learner of the package has, with texts that would break a page."""

    evil = '<script>alert("&")</script>'

    def step(self, x, y, **_):
        before, self.last = self.last, y
        row = len(self.weights)
        self.weights.append(1)
        alerts = [Alert(self.evil, "serious")] if row == 50 else []
        return type(
            "Step", (), {"y": before, "surprise": row / 10, "alerts": alerts, "learned": True}
        )

    def figures(self):
        return {"accuracy": 0.5}

    def report(self, seconds=0.0):
        return "class %s\n" % self.evil


def test_the_page_is_escaped_and_needs_nothing_else():
    result = evaluate([({}, c) for c in labels(100)], Novel())
    page = result._repr_html_()
    assert "<script" not in page and html.escape(Novel.evil) in page
    assert not re.search(r"(?:href|src|url|@import)", page), "no resource of others"
    assert [row for row, _ in result.alerts] == [51]
    plot = ElementTree.fromstring(result.svg())  # well-formed by itself
    assert (
        plot.get("role") == "img"
        and "Novel: accuracy over 100 rows" in plot.find(SVG + "title").text
    )
    dots = [c for c in plot.iter(SVG + "circle") if c.find(SVG + "title") is not None]
    assert [d.find(SVG + "title").text for d in dots] == ["row 51: " + Novel.evil]
    assert "1 alert opened" in page and page.count(html.escape(Novel.evil)) > 2
    assert not re.search(
        r'(?:fill|stroke)="(?:black|white|#000|#fff)', page
    ), "light and dark pages"


def test_alerts_are_bounded():
    """Those of a long stream: the last ones are kept, and memory does not grow."""

    class Loud(Novel):
        def step(self, x, y, **_):
            return type("Step", (), dict(y=y, surprise=9.0, alerts=[Alert("x", None)], learned=True))

    result = evaluate([({}, "a")] * 5000, Loud())
    assert [row for row, _ in result.alerts] == list(range(4001, 5001))
    assert result.svg().count("<circle") <= 501


@pytest.mark.parametrize("rows", [1, 2, 3, 1000])
def test_everything_lies_inside_the_plot(rows):
    for model in (Last(), Novel(), Regressor()):
        plot = ElementTree.fromstring(evaluate([({}, i % 3) for i in range(rows)], model).svg())
        _, _, width, height = map(float, plot.get("viewBox").split())
        for line in plot.iter(SVG + "polyline"):
            for point in line.get("points").split():
                x, y = map(float, point.split(","))
                assert 0 <= x <= width and 0 <= y <= height
        for text in plot.iter(SVG + "text"):
            assert 0 <= float(text.get("x")) <= width and 0 <= float(text.get("y")) <= height


# ---- learners of the package


def without_times(text):
    return re.sub(r"(?m)^(seconds|rows/s) .*\n", "", text)


def prefix(path, rows, folder):
    """The file's first rows as a file of its own."""
    with gzip.open(path, "rb") as f:
        lines = [f.readline() for _ in range(rows + 1)]
    short = folder / "rows.csv"
    short.write_bytes(b"".join(lines))
    return short


@pytest.mark.parametrize("name", ["elec2", "weather", "occupancy"])
def test_the_table_is_that_of_eval(name, program, examples, data, tmp_path):
    path = prefix(data / (name + ".csv.gz"), 6000, tmp_path)
    result = evaluate(datasets.rows(path), svmstream.Auto())
    table = subprocess.run(
        [program, "eval", "-q", str(path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert without_times(str(result) + "\n") == without_times(table)
    assert str(result) == repr(result) and re.search(r"(?m)^seconds  +\d", result.table)
    hits = sum(
        (p.row - before) * p.model
        for p, before in zip(result.curve, [0] + [p.row for p in result.curve])
    )
    assert hits / 6000 == pytest.approx(
        result.figures["accuracy"], abs=2e-3
    ), "the curve is that of the figures"


def test_a_regression_against_eval(program, examples, tmp_path):
    path = prefix(examples / "weather.csv.gz", 3000, tmp_path)
    column = path.read_text().splitlines()[0].split(",")[0]
    result = evaluate(datasets.rows(path, column), svmstream.ALSVM(task="regress"))
    table = subprocess.run(
        [
            program,
            "eval",
            "-q",
            "--method",
            "alsvm",
            "--task",
            "regress",
            "--label",
            column,
            str(path),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert without_times(str(result) + "\n") == without_times(table)


def test_refused_rows_are_counted_and_reported():
    rows = [
        ({"a": 1.0}, "u"),
        ({"a": math.inf}, "u"),
        ({"a": 2.0}, "v"),
        ({"a": "word"}, "v"),
        ({"a": 3.0}, "u"),
    ]
    with pytest.warns(UserWarning, match="2 of 5 rows were refused; the first, row 2: .*a"):
        result = evaluate(rows, svmstream.ALSVM())
    assert (
        result.refusals == 2
        and [row for row, _ in result.refused] == [2, 4]
        and result.figures["labelled"] == 3
    )


def test_times_and_ids_reach_the_learner():
    rows = [({"a": float(i % 5)}, i % 2, {"id": i, "ts": 1e9 + i}) for i in range(100)]
    model = svmstream.ALSVM(window_seconds=10)
    evaluate(rows, model)
    assert model.figures()["held"] in (10, 11)
    assert model.forget(99) == 1


def test_a_monitor(examples, tmp_path):
    """Rows have no labels for it; alerts and surprise are drawn."""
    rows = list(datasets.rows(prefix(examples / "occupancy.csv.gz", 3000, tmp_path)))
    result = evaluate(rows, svmstream.Monitor(interval=60))
    assert result.alerts and all(not math.isfinite(p.model) for p in result.curve)
    assert any(p.surprise for p in result.curve) and "most frequent" not in result.svg()
    opened = sum(alert.state == "open" for _, alert in result.alerts)
    assert result.svg().count("<circle") == opened >= 1
