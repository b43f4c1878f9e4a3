"""Streams for `make cost`, as measured ones are: columns that hang together (condition 1e3 to 1e5) in units of their own, the time of
day, a slow drift of values and of what the label depends on, and a row in a thousand that is far off. The same on each machine: drawn
from a seed by sums and products alone, whose values are the same everywhere.
"""
import random

DAY = 48  # rows
PIXELS = 54485


def bell(draw):
    """About normal."""
    return (draw.random() + draw.random() + draw.random() + draw.random() - 2) * 1.732


def wave(row, period):
    """A triangle from -1 to 1."""
    return abs(row % period / period * 4 - 2) - 1


def sensors(d, rows, seed):
    """Rows of two classes: day of the week, time of day, and d - 2 sensors that share two factors; the last stands still for
    longer than a window again and again."""
    draw = random.Random(seed)
    load = [(1 + draw.random(), bell(draw), .05 + .3 * draw.random()) for _ in range(d - 2)]
    unit = [10 ** draw.randrange(-2, 4) for _ in range(d - 2)]
    weight = [bell(draw) for _ in range(d - 2)]
    own = [0.] * (d - 2)
    slow = fast = level = 0.
    for i in range(rows):
        slow = .995 * slow + .1 * bell(draw)
        fast = .8 * fast + .6 * bell(draw)
        day = wave(i, DAY)
        own = [.9 * v + .44 * bell(draw) for v in own]
        x = [a * (slow + day) + b * fast + c * v for (a, b, c), v in zip(load, own)]
        if i % 500 == 499:
            weight[draw.randrange(d - 2)] = bell(draw)
        score = sum(w * v for w, v in zip(weight, own)) + .5 * fast + .5 * bell(draw)
        level = .98 * level + .02 * score
        if i % 1500 < 1200:
            x[-1] = 0
        if draw.random() < .001:
            x[draw.randrange(d - 2)] += 20
        yield [i // DAY % 7, i % DAY / DAY] + [u * (5 + v) for u, v in zip(unit, x)], int(score > level)


def histograms(d, rows, seed, classes=10):
    """Rows of ten classes that come in turn: shares of the pixels of a picture that have each of d colours. Most bins hold next to
    nothing, some nothing at all for long."""
    draw = random.Random(seed)
    rare = [draw.choice((0, 1, 1)) * 10. ** -draw.randrange(5) for _ in range(d)]
    rare[0] = rare[d // 2] = 1
    centre = [[r * draw.random() for r in rare] for _ in range(classes)]
    for i in range(rows):
        y = i % classes
        if i % 100 == 99:
            k = draw.randrange(d)
            centre[y][k] = rare[k] * draw.random()
        x = [c * (2 * draw.random()) ** 4 for c in centre[y]]
        if draw.random() < .005:
            x[draw.randrange(d)] += .002
        whole = sum(x)
        yield [int(PIXELS * v / whole) / PIXELS for v in x], y


def cells(x, y):
    return ["%.5g" % v for v in x] + [str(y)]


def write_csv(path, rows, d, key=0):
    """With a key: one of `key` keys, at random, before the label."""
    draw = random.Random(7)
    with open(path, "w") as f:
        f.write(",".join(["s%d" % j for j in range(d)] + ["key"] * bool(key) + ["label"]) + "\n")
        for x, y in rows:
            row = cells(x, y)
            if key:
                row.insert(-1, "machine-%d" % draw.randrange(key))
            f.write(",".join(row) + "\n")


def write_json(path, rows):
    with open(path, "w") as f:
        for x, y in rows:
            pairs = ", ".join('"s%d": %s' % (j, v) for j, v in enumerate(cells(x, y)[:-1]))
            f.write('{"x": {%s}, "y": %d}\n' % (pairs, y))


def write_log(path, rows, d):
    """As machines write it: a time, words, cells that are missing."""
    draw = random.Random(8)
    with open(path, "w") as f:
        f.write("timestamp,machine,shift,%s,label\n" % ",".join("s%d" % j for j in range(2, d)))
        for i, (x, y) in enumerate(rows):
            minute = 30 * i
            time = "2024-%02d-%02dT%02d:%02d:00Z" % (minute // 40320 + 1, minute // 1440 % 28 + 1, minute // 60 % 24, minute % 60)
            values = ["NA" if draw.random() < .02 else v for v in cells(x, y)[2:-1]]
            shift = ("night", "early", "late")[minute // 480 % 3]
            f.write(",".join([time, "press-%02d" % draw.randrange(8), shift, *values, ("ok", "fail")[y]]) + "\n")
