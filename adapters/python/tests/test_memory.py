"""Memory: hundreds of thousands of rows leave no more of it in use."""
import os

import pytest

import svmstream


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


ROWS = [
    (
        {name: float((i * p) % 101) for name, p in zip("abcdefgh", (3, 7, 11, 13, 17, 19, 23, 29))},
        i % 3 == 0,
    )
    for i in range(1009)
]
LEARN = {
    "ALSVM": (svmstream.ALSVM, 300_000, lambda m, x, y, i: m.learn_one(x, y)),
    "ALSVM with ids and results": (
        svmstream.ALSVM,
        60_000,
        lambda m, x, y, i: (m.step(x, None, id=i), m.label(i, y)),
    ),
    "Monitor": (lambda: svmstream.Monitor(interval=60), 6_000, lambda m, x, y, i: m.step(x)),
}


@pytest.mark.parametrize("name", LEARN)
def test_rows_leave_nothing_behind(name):
    make, count, learn = LEARN[name]
    model = make()

    def go(first, last):
        for i in range(first, last):
            learn(model, *ROWS[i % len(ROWS)], i)

    go(0, count // 3)
    before = resident()
    go(count // 3, 4 * count // 3)
    grown = resident() - before
    # A leak of 4 bytes a row of ALSVM is more; the allocators' own ups and downs are a few hundred
    # KiB.
    assert grown < 1 << 20, "%d bytes more after %d rows: %.2f a row" % (
        grown,
        count,
        grown / count,
    )


def test_a_block_leaves_nothing_behind():
    import numpy as np

    x = np.array([list(row.values()) for row, _ in ROWS])
    y = np.array([label for _, label in ROWS])
    model = svmstream.ALSVM()
    for _ in range(100):
        model.partial_fit(x, y).predict_proba(x)
    before = resident()
    for _ in range(300):
        model.partial_fit(x, y).predict_proba(x)
    assert resident() - before < 1 << 20


def test_objects_are_freed():
    def go(count):
        for _ in range(count):
            svmstream.ALSVM.from_bytes(svmstream.ALSVM().learn_one(*ROWS[0]).to_bytes()).learn_one(
                *ROWS[1]
            )

    go(200)
    before = resident()
    go(300)
    assert resident() - before < 1 << 20
