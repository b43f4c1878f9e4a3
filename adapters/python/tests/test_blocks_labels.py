"""Labels of a block: integers and bools by a table, others one by one, in the order in which they
appear.
"""
import numpy as np
import pytest

import svmstream
from svmstream._labels import Labels


def one_by_one(y):
    table = {}
    return [table.setdefault(item, len(table)) for item in y.tolist()], list(table)


@pytest.mark.parametrize(
    "y",
    [
        np.array([], dtype=np.int64),
        np.array([5]),
        np.array([3, 1, 3, -2, 1]),
        np.array([True, False, True]),
        np.array([False, False]),
        np.array([200, 3, 255], dtype=np.uint8),
        np.array([-128, 127, 0], dtype=np.int8),
        np.array([2**62, -(2**62), 0, 2**62]),
        np.array([2**63 - 1, 2**63 - 2, 2**63 - 1], dtype=np.uint64),
        np.array([-(2**63), -(2**63) + 1]),
        np.random.default_rng(1).integers(-40, 40, 500),
        np.random.default_rng(2).integers(0, 10**6, 500),
    ],
    ids=str,
)
def test_indexes_and_names(y):
    block = Labels().block(y, len(y))
    index, names = one_by_one(y)
    assert block.index.tolist() == index and block.index.dtype == np.int32
    assert block.names == names and [type(n) for n in block.names] == [type(n) for n in names]


def test_a_label_beyond_64_bits_is_refused():
    with pytest.raises(svmstream.errors.TooLargeError, match="64 bits"):
        Labels().block(np.array([2**63, 2**63 + 1], dtype=np.uint64), 2)
