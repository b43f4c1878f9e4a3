"""What is learned through Python is what the program learns: the same tables, byte for byte, on
whole real streams.
"""
import csv
import gzip
import json
import re
import subprocess

import numpy as np
import pytest

import svmstream
from svmstream import datasets

SETS = ("elec2", "weather", "occupancy")
# The presets of Auto, as flags of the program.
PRESETS = ("--novelty", "none", "--alert.rules", "none", "--missing", "mean", "--threads", "1")
ALSVM = ("--refit", "none", "--method", "alsvm", "--window", "500", "--C", "2")


def evaluate(program, path, *flags):
    return subprocess.run(
        [program, "eval", "-q", "--label", "label", *flags, str(path)],
        check=True,
        text=True,
        timeout=120,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ).stdout


def untimed(table):
    """A table without the two lines that state how long it took."""
    lines = table.splitlines(keepends=True)
    kept = [line for line in lines if line.split()[:1] not in (["seconds"], ["rows/s"])]
    assert len(lines) - len(kept) == 2, table
    return "".join(kept)


def figures(text):
    """The JSON of eval without what was measured by a clock."""
    timed = re.compile("seconds|rows/s|uptime|tree_wait")
    return {key: value for key, value in json.loads(text).items() if not timed.match(key)}


def matrix(path):
    with gzip.open(path, "rt", newline="") as f:
        names, *cells = list(csv.reader(f))
    table = np.array(cells, dtype=np.float64)
    return names[:-1], table[:, :-1], table[:, -1].astype(np.int64)


@pytest.mark.parametrize("name", SETS)
def test_auto_row_by_row(program, data, name):
    path = data / (name + ".csv.gz")
    model = svmstream.Auto()
    for x, y in datasets.rows(str(path), label="label"):
        model.learn_one(x, y)
    assert untimed(model.report(1.0)) == untimed(evaluate(program, path, *PRESETS))
    if name == "weather":
        assert figures(model.report(1.0, json=True)) == figures(
            evaluate(program, path, "--json", *PRESETS)
        )


@pytest.mark.parametrize("name", SETS)
def test_alsvm_in_blocks(program, data, name):
    """Blocks, rows without names and rows with names: one state."""
    path = data / (name + ".csv.gz")
    names, x, y = matrix(path)
    expected = untimed(evaluate(program, path, *PRESETS, *ALSVM))
    blocks, rows = (svmstream.ALSVM(window=500, C=2.0) for _ in range(2))
    for first in range(0, len(x), 997):
        blocks.learn_many(x[first : first + 997], y[first : first + 997])
    for row, label in zip(x, y):
        rows.learn_one(row, label)
    assert untimed(blocks.report(1.0)) == untimed(rows.report(1.0)) == expected
    named = svmstream.ALSVM(window=500, C=2.0)
    for row, label in zip(x, y):
        named.learn_one(dict(zip(names, row)), label)
    assert np.array_equal(named.coef_, blocks.coef_) and np.array_equal(
        named.intercept_, blocks.intercept_
    )
    assert untimed(named.report(1.0)) == expected


def test_single_precision_is_the_same_numbers(data):
    _, x, y = matrix(data / "occupancy.csv.gz")
    x32 = x.astype(np.float32)
    one, other = svmstream.ALSVM(), svmstream.ALSVM()
    one.partial_fit(x32, y)
    other.partial_fit(x32.astype(np.float64), y)
    assert np.array_equal(
        one.decision_function(x32), other.decision_function(x32.astype(np.float64))
    )
    assert one.report(1.0) == other.report(1.0)
