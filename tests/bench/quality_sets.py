#!/usr/bin/python3
"""The streams of `make bench ONLY=quality`, each a table of numbers and a target a row, in the order in which they are fed.

usage: quality_sets.py DATA FOLDER [NAME...]      writes FOLDER/{choose,report}/NAME.csv, the last column `label` or `y`

Measured ones are read from DATA: five streams and covtype15k in file order, the other sets in file order or, where their rows are
sorted by class, shuffled with a fixed seed. Series become regressions: the target is the next value. The others are generated here,
20,000 rows each, from a seed made of their name. The sets come in groups (streams, tables, generated ones, those for trees,
regressions); in each, in the order of the CRC-32 of their names (those for trees: of the names), they belong in turn to the halves `choose` and `report`: a choice is made on one and
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


def agrawal_columns(random, n):
    """The nine columns of Agrawal et al.'s applicants for a loan, before they are disturbed."""
    salary = random.uniform(20e3, 150e3, n)
    commission = np.where(salary >= 75e3, 0, random.uniform(10e3, 75e3, n))
    age, education = random.integers(20, 81, n), random.integers(0, 5, n)
    car, area = random.integers(1, 21, n), random.integers(0, 9, n)
    value = (9 - area) * 100e3 * random.uniform(0.5, 1.5, n)
    years, loan = random.integers(1, 31, n), random.uniform(0, 500e3, n)
    return np.column_stack([salary, commission, age, education, car, area, value, years, loan]).astype(float)


def agrawal_disturbed(random, x):
    """Numbers are off by up to 5 % of their range; a commission of 0 stays."""
    for j, width in ((0, 130e3), (1, 65e3), (2, 60), (6, 900e3), (7, 29), (8, 500e3)):
        x[:, j] += 0.05 * width * random.uniform(-1, 1, len(x)) * (x[:, j] != 0)
    return x


def agrawal_rules(x):
    """Eight of the functions of Agrawal, Imielinski and Swami (1993): which applicants are of group A."""
    salary, commission, age, education, _, _, value, years, loan = x.T
    young, old = age < 40, age >= 60

    def between(a, b, v=salary):
        return (a <= v) & (v <= b)

    equity = np.where(years >= 20, 0.1 * value * (years - 20), 0)
    income = 0.67 * (salary + commission)
    return {1: young | old,
            2: np.where(young, between(50e3, 100e3), np.where(old, between(25e3, 75e3), between(75e3, 125e3))),
            3: np.where(young, education < 2, np.where(old, education > 1, (education > 0) & (education < 4))),
            5: np.where(young, np.where(between(50e3, 100e3), between(100e3, 300e3, loan), between(200e3, 400e3, loan)),
                        np.where(old, np.where(between(25e3, 75e3), between(300e3, 500e3, loan), between(100e3, 300e3, loan)),
                                 np.where(between(75e3, 125e3), between(200e3, 400e3, loan), between(300e3, 500e3, loan)))),
            7: income - 0.2 * loan - 20e3 > 0,
            8: income - 5000 * education - 20e3 > 0,
            9: income - 5000 * education - 0.2 * loan - 10e3 > 0,
            10: income - 5000 * education + 0.2 * equity - 0.2 * loan - 20e3 > 0}


def agrawal(random, n):
    """Applicants for a loan after Agrawal et al.: nine columns, four of their rules in turn, 5000 rows each; numbers disturbed by 5 %."""
    x = agrawal_columns(random, n)
    rules = agrawal_rules(x)
    y = np.choose(np.arange(n) // 5000 % 4, [rules[k] for k in (1, 2, 3, 10)]).astype(int)
    return agrawal_disturbed(random, x), y


def agrawal_five(random, n):
    """The same applicants; functions 1, 3, 5, 7 and 9 in turn, 4000 rows each."""
    x = agrawal_columns(random, n)
    rules = agrawal_rules(x)
    y = np.choose(np.arange(n) // 4000 % 5, [rules[k] for k in (1, 3, 5, 7, 9)]).astype(int)
    return agrawal_disturbed(random, x), y


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


# ---- generated: what trees, neighbours and densities are for

def rules(random, n):
    """Twelve uniform columns; class 1 where one of eight conjunctions of three thresholds holds; a fiftieth of the labels wrong."""
    x = random.random((n, 12))
    y = np.zeros(n, bool)
    for _ in range(8):
        columns = random.permutation(12)[:3]
        cuts, above = 0.35 + 0.3 * random.random(3), random.random(3) < 0.5
        y |= np.all((x[:, columns] > cuts) == above, axis=1)
    return x, flip(random, y.astype(int), 0.02)


def steps(random, n):
    """Ten normal columns of which six act by steps of their own height, four to a column; the sum against its median, noise of .3."""
    x = random.normal(size=(n, 10))
    score = np.zeros(n)
    for j in range(6):
        for cut, height in zip(random.normal(size=4), random.normal(size=4)):
            score += height * (x[:, j] > cut)
    return x, (score + 0.3 * random.normal(size=n) > np.median(score)).astype(int)


def crossed(random, n):
    """Ten columns of different laws; three pairs act by the product of what they deviate from their medians, one column by itself."""
    x = np.column_stack([random.normal(size=(n, 4)), random.random((n, 3)), random.exponential(size=(n, 3))])
    u = x - np.array([0, 0, 0, 0, .5, .5, .5, np.log(2), np.log(2), np.log(2)])
    score = u[:, 0] * u[:, 1] + 4 * u[:, 4] * u[:, 2] + u[:, 7] * np.sign(u[:, 8]) + 0.5 * u[:, 3]
    return x, flip(random, (score > 0).astype(int), 0.03)


def gated(random, n):
    """Eight normal columns and one of four codes; the code chooses which two columns count, and against which threshold; three classes."""
    code, x = random.integers(0, 4, n), random.normal(size=(n, 8))
    pairs = np.array([[0, 1], [2, 3], [4, 5], [6, 0]])[code]
    first, second = np.take_along_axis(x, pairs, axis=1).T
    y = np.where(first > np.array([-.5, 0, .5, 0])[code], 2, (second > np.array([0, .5, -.5, .3])[code]).astype(int))
    return np.column_stack([x, code]), flip(random, y, 0.02, 3)


def parity(random, n):
    """Eight normal columns; the class is the parity of the signs of three of them."""
    x = random.normal(size=(n, 8))
    return x, np.sum(x[:, random.permutation(8)[:3]] > 0, axis=1) % 2


def tree_changes(random, n):
    """Two classes by a random tree of depth five over eight numbers; at half of the rows another tree."""
    x = random.random((n, 8))
    return x, np.concatenate([tree_labels(random, part, 8, 5, 2) for part in np.split(x, 2)])


def checkerboard(random, n):
    """A board of four by four fields that makes half a turn in the course of the rows."""
    x, angle = random.random((n, 2)) * 2 - 1, np.pi * np.arange(n) / n
    u = x[:, 0] * np.cos(angle) + x[:, 1] * np.sin(angle)
    v = x[:, 1] * np.cos(angle) - x[:, 0] * np.sin(angle)
    return x, (np.floor(2 * u) + np.floor(2 * v)).astype(int) % 2


def ring(random, n):
    """Between two circles or not, in two of four normal columns; a fiftieth of the labels wrong."""
    x = random.normal(size=(n, 4))
    radius = np.hypot(x[:, 0], x[:, 1])
    return x, flip(random, ((radius > 0.8) & (radius < 1.6)).astype(int), 0.02)


def two_gaussians(random, n):
    """Two normal classes in six dimensions, with means close to each other and covariances of their own."""
    y, x = random.integers(0, 2, n), random.normal(size=(n, 6))
    shape = random.normal(size=(2, 6, 6)) / np.sqrt(6) + 0.4 * np.eye(6)
    mean = 0.3 * random.normal(size=(2, 6))
    return mean[y] + np.einsum("nij,nj->ni", shape[y], x), y


# ---- generated: numbers

WEEKDAYS = np.array("mon tue wed thu fri sat sun".split(), object)
SKIES = np.array("clear cloudy rain snow".split(), object)


def demand(random, n):
    """Hourly demand: hour, weekday, holiday and weather as words, temperature and wind as numbers; weather persists for hours."""
    at = np.arange(n)
    hour, day = at % 24, at // 24
    weekday = day % 7
    holiday = (random.random(n // 24 + 1) < 0.04)[day]
    sky, stay = np.empty(n, int), random.random(n) < 0.85
    drawn = random.choice(4, n, p=[.45, .3, .2, .05])
    for i in range(n):
        sky[i] = sky[i - 1] if i and stay[i] else drawn[i]
    season = np.sin(2 * np.pi * (day / 365 - 0.3))
    noise, slow = random.normal(size=n), np.zeros(n)
    for i in range(1, n):
        slow[i] = 0.95 * slow[i - 1] + 0.3 * noise[i]
    temperature = 12 + 10 * season + 5 * np.sin(2 * np.pi * (hour - 9) / 24) + 2 * slow
    wind = random.gamma(2, 2, n)
    free = (weekday > 4) | holiday
    commute = np.exp(-(hour - 8.) ** 2 / 3) + 1.2 * np.exp(-(hour - 17.5) ** 2 / 4)
    leisure = np.exp(-(hour - 14.) ** 2 / 18)
    level = np.where(free, 260 * leisure, 320 * commute + 90 * leisure) + 20
    level *= np.clip(0.3 + 0.05 * temperature - 0.0008 * temperature ** 2, 0.2, 1.2) * np.array([1, .95, .5, .3])[sky]
    level *= np.where(wind > 8, 0.8, 1) * np.exp(0.12 * slow)
    level = np.maximum(0, level + (5 + 0.05 * level) * random.normal(size=n))
    words = [np.char.add("h", hour.astype(str)).astype(object), WEEKDAYS[weekday],
             np.where(holiday, "yes", "no").astype(object), SKIES[sky]]
    names = ["hour", "weekday", "holiday", "weather", "temperature", "wind"]
    return names, np.column_stack(words + [np.round(temperature, 1).astype(object), np.round(wind, 1).astype(object)]), np.round(level)


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
        *names, x, y = rows(np.random.default_rng(zlib.crc32(("svmstream " + name).encode())), ROWS)
        return names[0] if names else names_of(x.shape[1]), x, y
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
    "trees": [
        generated("rules", rules),
        generated("steps", steps),
        generated("crossed", crossed),
        generated("gated", gated),
        generated("parity3", parity),
        generated("tree-changes", tree_changes),
        generated("checkerboard-turns", checkerboard),
        generated("agrawal-five", agrawal_five),
        generated("ring", ring),
        generated("two-gaussians", two_gaussians),
        generated("demand", demand)],
    "regression": [
        ("weather-temperature", next_day, "weather.csv.gz", "next day's mean temperature"),
        ("nyc-taxi", next_value("nab_nyc_taxi"), "nab_nyc_taxi.csv.gz", "the next value, half an hour ahead"),
        ("machine-temperature", next_value("nab_machine_temperature_system_failure"),
         "nab_machine_temperature_system_failure.csv.gz", "the next value, five minutes ahead"),
        generated("linear-drift", linear_drift),
        generated("friedman", friedman),
        generated("heavy-tails", heavy_tails)],
}


REGRESSIONS = {"demand"}  # outside of the group of regressions


def halves(title, group):
    """Halves of a group's sets by name; a permuted stream stays with its original and does not count. The group of sets for trees
    is in the order of its names."""
    key = (lambda name: name) if title == "trees" else (lambda name: zlib.crc32(name.encode()))
    ordered = sorted((name for name, *_ in group if not name.endswith("-permuted")), key=key)
    half = {name: ("choose", "report")[k % 2] for k, name in enumerate(ordered)}
    return {name: half[name.replace("-permuted", "")] for name, *_ in group}


SETS = [Set(name, group, "regress" if group == "regression" or name in REGRESSIONS else "classify", make, file, note,
            halves(group, entries)[name])
        for group, entries in GROUPS.items() for name, make, file, note in entries]


def write(path, names, x, y, task):
    """CSV; numbers in the fewest digits that read back the same, so files do not depend on numpy's printing."""
    with open(path, "w") as file:
        file.write(",".join(names + ["label" if task == "classify" else "y"]) + "\n")
        for row, target in zip(x.tolist(), y.tolist()):
            file.write(",".join([v if isinstance(v, str) else repr(int(v)) if v == int(v) else repr(v) for v in row] +
                                [repr(target)]) + "\n")


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
