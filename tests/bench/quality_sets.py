#!/usr/bin/python3
"""The streams of `make bench ONLY=quality`, each a table of numbers and a target a row, in the order in which they are fed.

usage: quality_sets.py DATA FOLDER [NAME...]      writes FOLDER/{choose,report}/NAME.csv, the last column `label` or `y`

Measured ones are read from DATA: five streams and covtype15k in file order, the other sets in file order or, where their rows are
sorted by class, shuffled with a fixed seed. Series become regressions: the target is the next value. The others are generated here,
20,000 rows each, from a seed made of their name. The sets come in groups (streams, tables, generated ones, regressions); in each, in
the order of the CRC-32 of their names, they belong in turn to the halves `choose` and `report`: a choice is made on one and
reported on the other.
"""
import gzip
import os
import sys
import zlib
from collections import namedtuple

import numpy as np

Set = namedtuple("Set", "name group task make file note half")
ROWS = 20000
BLOCK = 100  # rows within which rialto-permuted is permuted
SHUFFLE = 20240513  # seed of all shuffles


def names_of(d):
    return ["x%d" % (i + 1) for i in range(d)]


# ---- measured

def table(data, name):
    with gzip.open(os.path.join(data, name + ".csv.gz"), "rt") as file:
        names = file.readline().strip().split(",")
        return names, np.loadtxt(file, delimiter=",", ndmin=2)


def stream(name):
    def make(data):
        names, rows = table(data, name)
        return names[:-1], rows[:, :-1], rows[:, -1].astype(int)
    return make


def permuted(name):
    def make(data):
        names, x, y = stream(name)(data)
        random = np.random.default_rng(SHUFFLE)
        order = np.concatenate([at + random.permutation(min(BLOCK, len(y) - at)) for at in range(0, len(y), BLOCK)])
        return names, x[order], y[order]
    return make


def sparse(name, shuffle=False, most=None):
    def make(data):
        labels, cells, d = [], [], 0
        with gzip.open(os.path.join(data, name + ".svm.gz"), "rt") as file:
            for line in file:
                words = line.split()
                pairs = [word.split(":") for word in words[1:]]
                labels.append(int(words[0]))
                cells.append(([int(i) - 1 for i, _ in pairs], [float(v) for _, v in pairs]))
                d = max([d] + [i + 1 for i in cells[-1][0]])
        order = np.random.default_rng(SHUFFLE).permutation(len(labels)) if shuffle else np.arange(len(labels))
        order = order[:most]
        x = np.zeros((len(order), d))
        for row, k in enumerate(order):
            x[row, cells[k][0]] = cells[k][1]
        return names_of(d), x, np.array(labels)[order]
    return make


def next_day(data):
    """The next day's mean temperature from all that was measured today, rain (the label) included."""
    names, rows = table(data, "weather")
    return names[:-1] + ["rain"], rows[:-1], rows[1:, names.index("temperature")]


def next_value(name):
    """One step ahead: the last four values, the hour (with its fraction) and the weekday of the last one; the target is the next."""
    def make(data):
        _, rows = table(data, name)
        t, v = rows[:, 0], rows[:, 1]
        at = np.arange(3, len(v) - 1)
        hour, weekday = t[at] % 86400 / 3600, (t[at] // 86400 + 3) % 7
        x = np.column_stack([v[at], v[at - 1], v[at - 2], v[at - 3], hour, weekday])
        return ["v0", "v1", "v2", "v3", "hour", "weekday"], x, v[at + 1]
    return make


# ---- generated: classes

def flip(random, y, share, classes=2):
    """A share of labels is replaced by another class."""
    hit = random.random(len(y)) < share
    return np.where(hit, (y + random.integers(1, classes, len(y))) % classes, y)


def sea(random, n):
    """Three uniform columns, the sum of two against a threshold that changes three times; a tenth of the labels wrong."""
    x = random.random((n, 3)) * 10
    threshold = np.array([8, 9, 7, 9.5])[np.arange(n) * 4 // n]
    return x, flip(random, (x[:, 0] + x[:, 1] <= threshold).astype(int), 0.1)


def hyperplane(turn):
    """A plane through the middle of the cube whose normal makes a random walk, `turn` a row; a twentieth wrong."""
    def make(random, n):
        x = random.random((n, 10))
        w = np.cumsum(np.vstack([random.normal(size=(1, 10)) * 2, turn * random.normal(size=(n - 1, 10))]), axis=0)
        return x, flip(random, (np.sum(w * (x - 0.5), axis=1) > 0).astype(int), 0.05)
    return make


def stagger(random, n):
    """Three attributes of three values each as 0/1 columns; the rule changes every 4000 rows in turn among three."""
    size, colour, shape = random.integers(0, 3, (3, n))
    rules = [(size == 0) & (colour == 0), (colour == 1) | (shape == 0), size > 0]
    concept = np.arange(n) // 4000 % 3
    x = np.concatenate([np.eye(3)[a] for a in (size, colour, shape)], axis=1)
    return x, np.choose(concept, rules).astype(int)


SEGMENTS = np.array([[int(c) for c in s] for s in (
    "1110111 0010010 1011101 1011011 0111010 1101011 1101111 1010010 1111111 1111011".split())])


def led(random, n):
    """Digits of seven segments, each wrong once in ten, among 17 columns of noise; every 5000 rows four segments change places with noise."""
    y = random.integers(0, 10, n)
    x = random.integers(0, 2, (n, 24))
    shown = SEGMENTS[y] ^ (random.random((n, 7)) < 0.1)
    place = np.arange(24)
    for at in range(0, n, 5000):
        x[at:at + 5000, place[:7]] = shown[at:at + 5000]
        moved, to = random.permutation(7)[:4], 7 + random.permutation(17)[:4]
        place[moved], place[to] = place[to].copy(), place[moved].copy()
    return x.astype(float), y


def centres(speed):
    """Rows around 50 centres of four classes in ten dimensions; the centres move `speed` a row and turn back at the faces of the cube."""
    def make(random, n):
        at, width = random.random((50, 10)), 0.05 + 0.1 * random.random(50)
        course = random.normal(size=(50, 10))
        course *= speed / np.linalg.norm(course, axis=1, keepdims=True)
        share, label = random.random(50), random.integers(0, 4, 50)
        x, which = np.empty((n, 10)), random.choice(50, n, p=share / share.sum())
        for i in range(n):
            k = which[i]
            x[i] = at[k] + random.normal(size=10) * width[k]
            at += course
            out = (at < 0) | (at > 1)
            course[out] *= -1
        return x, label[which]
    return make


def tree_labels(random, x, numbers, depth, classes):
    """A random tree over the cube: thresholds on numbers between what is left of their ranges, 0/1 columns taken as they are."""
    y = np.zeros(len(x), int)

    def grow(rows, left, low, high):
        if left == 0 or (left < depth - 2 and random.random() < 0.15):
            y[rows] = random.integers(classes)
            return
        j = random.integers(x.shape[1])
        cut = low[j] + (high[j] - low[j]) * (0.2 + 0.6 * random.random()) if j < numbers else 0.5
        below = x[rows, j] < cut
        other = high.copy()
        other[j] = cut
        grow(rows[below], left - 1, low, other)
        other = low.copy()
        other[j] = cut
        grow(rows[~below], left - 1, other, high)

    grow(np.arange(len(x)), depth, np.zeros(x.shape[1]), np.ones(x.shape[1]))
    return y


def tree(every):
    """Labels of a random tree of depth seven over five numbers and five attributes of three values; another tree `every` rows."""
    def make(random, n):
        numbers = random.random((n, 5))
        x = np.concatenate([numbers] + [np.eye(3)[random.integers(0, 3, n)] for _ in range(5)], axis=1)
        y = [tree_labels(random, x[at:at + every], 5, 7, 3) for at in range(0, n, every)]
        return x, np.concatenate(y)
    return make


def waveform(random, n):
    """Breiman's waveforms: mixtures of two of three triangles at 21 points, noise of deviation 1; three classes."""
    i = np.arange(1, 22)
    h = np.array([np.maximum(6 - abs(i - c), 0) for c in (7, 15, 11)])
    y, u = random.integers(0, 3, n), random.random((n, 1))
    first, second = np.array([0, 0, 1])[y], np.array([1, 2, 2])[y]
    return u * h[first] + (1 - u) * h[second] + random.normal(size=(n, 21)), y


def agrawal(random, n):
    """Applicants for a loan after Agrawal et al.: nine columns, four of their rules in turn, 5000 rows each; numbers disturbed by 5 %."""
    salary = random.uniform(20e3, 150e3, n)
    commission = np.where(salary >= 75e3, 0, random.uniform(10e3, 75e3, n))
    age, education = random.integers(20, 81, n), random.integers(0, 5, n)
    car, area = random.integers(1, 21, n), random.integers(0, 9, n)
    value = (9 - area) * 100e3 * random.uniform(0.5, 1.5, n)
    years, loan = random.integers(1, 31, n), random.uniform(0, 500e3, n)
    young, old = age < 40, age >= 60

    def between(a, b, v=salary):
        return (a <= v) & (v <= b)

    equity = np.where(years >= 20, 0.1 * value * (years - 20), 0)
    rules = [young | old,
             np.where(young, between(50e3, 100e3), np.where(old, between(25e3, 75e3), between(75e3, 125e3))),
             np.where(young, education < 2, np.where(old, education > 1, (education > 0) & (education < 4))),
             0.67 * (salary + commission) - 5000 * education + 0.2 * equity - 0.2 * loan - 20e3 > 0]
    y = np.choose(np.arange(n) // 5000 % 4, rules).astype(int)
    x = np.column_stack([salary, commission, age, education, car, area, value, years, loan]).astype(float)
    for j, width in ((0, 130e3), (1, 65e3), (2, 60), (6, 900e3), (7, 29), (8, 500e3)):
        x[:, j] += 0.05 * width * random.uniform(-1, 1, n) * (x[:, j] != 0)
    return x, y


def sine(random, n):
    """Below or above a sine, the two classes changing places every 5000 rows; two columns more are noise."""
    x = random.random((n, 4))
    return x, (x[:, 1] < 0.5 + 0.3 * np.sin(3 * np.pi * x[:, 0])).astype(int) ^ (np.arange(n) // 5000 % 2)


def circle(random, n):
    """Inside or outside a circle that jumps to another place every 5000 rows."""
    x = random.random((n, 2))
    place = np.array([[0.2, 0.5, 0.15], [0.4, 0.5, 0.2], [0.6, 0.5, 0.25], [0.8, 0.5, 0.3]])[np.arange(n) // 5000 % 4]
    return x, (np.hypot(x[:, 0] - place[:, 0], x[:, 1] - place[:, 1]) < place[:, 2]).astype(int)


def gaussians(random, n):
    """Ten classes, Gaussians in eight dimensions whose means make random walks."""
    y = random.integers(0, 10, n)
    mean, x = random.normal(size=(10, 8)) * 1.5, np.empty((n, 8))
    for i in range(n):
        mean += 0.01 * random.normal(size=(10, 8))
        x[i] = mean[y[i]] + random.normal(size=8)
    return x, y


def rare(random, n):
    """One row in twenty is of a class that lies on two sides of the other and moves slowly; six columns."""
    y = (random.random(n) < 0.05).astype(int)
    side, angle = np.where(random.random(n) < 0.7, 1, -1), np.arange(n) * np.pi / n
    x = random.normal(size=(n, 6))
    x[:, 0] += y * side * 2.5 * np.cos(angle)
    x[:, 1] += y * side * 2.5 * np.sin(angle)
    return x, y


# ---- generated: numbers

def linear_drift(random, n):
    """A linear target whose weights make a random walk; noise of deviation 0.5."""
    x = random.normal(size=(n, 10))
    w = np.cumsum(np.vstack([random.normal(size=(1, 10)), 0.02 * random.normal(size=(n - 1, 10))]), axis=0)
    return x, np.sum(w * x, axis=1) + 0.5 * random.normal(size=n)


def friedman(random, n):
    """Friedman's function of five of ten columns; at half of the rows other five take over; noise of deviation 1."""
    x = random.random((n, 10))
    p = np.where((np.arange(n) < n // 2)[:, None], np.arange(5), [7, 9, 5, 8, 6])
    a, b, c, d, e = np.take_along_axis(x, p, axis=1).T
    return x, 10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e + random.normal(size=n)


def heavy_tails(random, n):
    """A linear target under noise of Student's t with 2.5 degrees of freedom."""
    x = random.normal(size=(n, 8))
    return x, x @ random.normal(size=8) + random.standard_t(2.5, n)


def generated(name, rows, words=None):
    def make(data):
        x, y = rows(np.random.default_rng(zlib.crc32(("svmstream " + name).encode())), ROWS)
        return names_of(x.shape[1]), x, y
    return name, make, None, " ".join((words or rows.__doc__).split())


FILE = "in file order"
GROUPS = {
    "stream": [
        ("elec2", stream("elec2"), "elec2.csv.gz", FILE),
        ("weather", stream("weather"), "weather.csv.gz", FILE),
        ("occupancy", stream("occupancy"), "occupancy.csv.gz", FILE),
        ("rialto", stream("rialto"), "rialto.csv.gz", FILE),
        ("rialto-permuted", permuted("rialto"), "rialto.csv.gz", "permuted within blocks of 100 rows"),
        ("kdd99-10pct", stream("kdd99-10pct"), "kdd99-10pct.csv.gz", FILE),
        ("covtype15k", sparse("covtype15k"), "covtype15k.svm.gz", FILE)],
    "table": [
        ("a9a", sparse("a9a", most=15000), "a9a.svm.gz", "the first 15,000 rows"),
        ("ijcnn1", sparse("ijcnn1", most=20000), "ijcnn1.svm.gz", "the first 20,000 rows"),
        ("magic", sparse("magic"), "magic.svm.gz", FILE),
        ("mushrooms", sparse("mushrooms", shuffle=True), "mushrooms.svm.gz", "shuffled"),
        ("shuttle", sparse("shuttle"), "shuttle.svm.gz", FILE),
        ("german.numer", sparse("german.numer"), "german.numer.svm.gz", FILE),
        ("splice", sparse("splice"), "splice.svm.gz", FILE),
        ("cod-rna30k", sparse("cod-rna30k"), "cod-rna30k.svm.gz", FILE),
        ("connect-4", sparse("connect-4", shuffle=True, most=15000), "connect-4.svm.gz", "shuffled, 15,000 rows"),
        ("w8a", sparse("w8a", shuffle=True, most=20000), "w8a.svm.gz", "shuffled, 20,000 rows"),
        ("svmguide1", sparse("svmguide1", shuffle=True), "svmguide1.svm.gz", "shuffled"),
        ("svmguide3", sparse("svmguide3", shuffle=True), "svmguide3.svm.gz", "shuffled")],
    "generated": [
        generated("sea", sea),
        generated("hyperplane-slow", hyperplane(0.01), "A plane that turns slowly; a twentieth of the labels wrong."),
        generated("hyperplane-fast", hyperplane(0.05), "A plane that turns fast; a twentieth of the labels wrong."),
        generated("stagger", stagger),
        generated("led-drift", led),
        generated("rbf", centres(0), "Four classes around 50 centres in ten dimensions."),
        generated("rbf-moving", centres(0.0005), "Four classes around 50 centres that move."),
        generated("tree", tree(ROWS), "Three classes by one random tree."),
        generated("tree-abrupt", tree(5000), "Three classes by a random tree, another every 5000 rows."),
        generated("waveform", waveform),
        generated("agrawal", agrawal),
        generated("sine-swaps", sine),
        generated("circle-jumps", circle),
        generated("gaussians10", gaussians),
        generated("rare5", rare)],
    "regression": [
        ("weather-temperature", next_day, "weather.csv.gz", "next day's mean temperature"),
        ("nyc-taxi", next_value("nab_nyc_taxi"), "nab_nyc_taxi.csv.gz", "the next value, half an hour ahead"),
        ("machine-temperature", next_value("nab_machine_temperature_system_failure"),
         "nab_machine_temperature_system_failure.csv.gz", "the next value, five minutes ahead"),
        generated("linear-drift", linear_drift),
        generated("friedman", friedman),
        generated("heavy-tails", heavy_tails)],
}


def halves(group):
    """Halves of a group's sets by name; a permuted stream stays with its original and does not count."""
    ordered = sorted((name for name, *_ in group if not name.endswith("-permuted")), key=lambda name: zlib.crc32(name.encode()))
    half = {name: ("choose", "report")[k % 2] for k, name in enumerate(ordered)}
    return {name: half[name.replace("-permuted", "")] for name, *_ in group}


SETS = [Set(name, group, "regress" if group == "regression" else "classify", make, file, note, halves(entries)[name])
        for group, entries in GROUPS.items() for name, make, file, note in entries]


def write(path, names, x, y, task):
    """CSV; numbers in the fewest digits that read back the same, so files do not depend on numpy's printing."""
    with open(path, "w") as file:
        file.write(",".join(names + ["label" if task == "classify" else "y"]) + "\n")
        for row, target in zip(x.tolist(), y.tolist()):
            file.write(",".join([repr(int(v)) if v == int(v) else repr(v) for v in row] + [repr(target)]) + "\n")


def main():
    data, folder, only = sys.argv[1], sys.argv[2], sys.argv[3:]
    for s in SETS:
        if only and s.name not in only:
            continue
        os.makedirs(os.path.join(folder, s.half), exist_ok=True)
        names, x, y = s.make(data)
        write(os.path.join(folder, s.half, s.name + ".csv"), names, x, y, s.task)
        print("%-20s %-8s %-6s %7d rows %4d columns  %s" % (s.name, s.task, s.half, *x.shape, s.note))


if __name__ == "__main__":
    main()
