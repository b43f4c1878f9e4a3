"""Part `sets`: skab and SMD, the runs of rows with a label, at two budgets; and two peers with 3 of 5 rows at the same false alerts.

Found: an alert opens in the run, or an open one is updated there with a sensor that none of its events named before. Any: an alert
event of any kind that a person hears. Covered: an alert is open in the run, new or not. False: alerts opened outside of the runs, a
day; SMD has a row a minute, skab about one a second: a file of it is 20 minutes, false is counted by file there.

Peers: a sensor deviates where 3 of its last 5 rows are further than a threshold from its mean: of the training part in its standard
deviations (z), or of an exponentially weighted mean and deviation (ewma). An alert of theirs ends after an hour without (skab: a
minute), and a run is found by the rule above. The threshold is the lowest at which the whole set has at most that many false alerts
a day (skab: a file) after the training part, in hindsight: SMD's first half, skab's first 400 rows.
"""
import csv
import glob
import gzip
import os
import tempfile

import numpy as np

import alert_runs
import results as table_rows
from alert_runs import DATA, DAY, opened, spoke

GROUPS = {"skab": (1.0, 400, 60), "smd": (60.0, 0.5, 60)}  # seconds a row, training rows or share, rows that end a peer's alert
MUST = {"skab": 5, "smd": 22}
BUDGETS = {"1/day": 1, "3/day": 3}


def read(path):
    """Rows x sensors, and the labels."""
    with gzip.open(path, "rt", newline="") as f:
        head = next(csv.reader(f))
        x = np.array([row for row in csv.reader(f)], float)
    y = x[:, head.index("is_anomaly")] > 0
    return x[:, [j for j, name in enumerate(head) if name not in ("t", "is_anomaly")]], y


def faults_of(y):
    edges = np.flatnonzero(np.diff(np.concatenate([[0], y.astype(int), [0]])))
    return list(zip(edges[::2], edges[1::2]))


def open_rows(events, n):
    """Whether an alert was open at each row."""
    is_open, since = np.zeros(n, bool), {}
    for e in events:
        if e.state == "open":
            since[e.alert] = e.row - 1
        elif e.state == "close" and e.alert in since:
            is_open[since.pop(e.alert):e.row - 1] = True
    for row in since.values():
        is_open[row:] = True
    return is_open


def new_sensors(events):
    """Alerts that opened, and updates that name a sensor which no earlier event of their alert named."""
    named, news = {}, []
    for e in spoke(events):
        features = {top["feature"] for top in e.raw.get("top", [])}
        before = named.setdefault(e.alert, set())
        if e.state == "open" or features - before:
            news.append(e)
        before |= features
    return news


def hits(events, faults):
    rows = [e.row - 1 for e in events]
    return sum(any(a <= r < b for r in rows) for a, b in faults)


# ---- peers

def z_scores(x, train):
    mean, deviation = x[:train].mean(axis=0), x[:train].std(axis=0)
    return np.abs(x - mean) / np.maximum(deviation, 0.01 * np.maximum(np.ptp(x[:train], axis=0), 1e-3))


def ewma_scores(x, train):
    mean, square = x[:60].mean(axis=0), x[:60].var(axis=0)
    floor = (0.01 * np.maximum(np.ptp(x[:train], axis=0), 1e-3)) ** 2
    score = np.empty(x.shape)
    for i, row in enumerate(x):
        residual = row - mean
        score[i] = residual * residual / np.maximum(square, floor)
        mean = mean + 0.02 * residual
        square = square + 0.005 * (np.minimum(residual * residual, 25 * np.maximum(square, floor)) - square)
    return np.sqrt(score)


def three_of_five(score):
    """Of each sensor the third largest of its last 5 rows."""
    padded = np.concatenate([np.zeros((4, score.shape[1])), score])
    stack = np.stack([padded[k:k + len(score)] for k in range(5)])
    return np.partition(stack, 2, axis=0)[2]


def peer_news(score, threshold, gap):
    """Rows at which an alert opens, and rows at which another sensor joins one."""
    row, sensor = np.nonzero(score > threshold)
    if not len(row):
        return row, row
    begins = np.concatenate([[True], np.diff(row) > gap])
    episode = np.cumsum(begins)
    _, first = np.unique(episode * score.shape[1] + sensor, return_index=True)
    return row[begins], row[np.sort(first)]


def peer_at(cases, threshold, gap):
    """False alerts after the training parts, and faults found, in all files."""
    false = found = 0
    for score, y, train in cases:
        begun, news = peer_news(score, threshold, gap)
        false += int((~y[begun[begun >= train]]).sum())
        found += sum(((news >= a) & (news < b)).any() for a, b in faults_of(y))
    return false, int(found)


def peers(files, name, train_of, gap, limits):
    """Found at each limit of false alerts in all files together."""
    make = {"z": z_scores, "ewma": ewma_scores}[name]
    cases = [(three_of_five(make(x, train_of(x))), y, train_of(x)) for x, y in files]
    levels = [peer_at(cases, t, gap) for t in np.geomspace(2, 2000, 70)]
    result = []
    for limit in limits:
        last = max((i for i, (false, _) in enumerate(levels) if false > limit), default=-1)
        result.append(levels[last + 1][1] if last + 1 < len(levels) else 0)
    return result


# ---- the part

def run(job):
    path, budget = job
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "rows.csv")
        with gzip.open(path, "rb") as f, open(copy, "wb") as to:
            to.write(f.read())
        return job, alert_runs.play(copy, ["ts=t", "ignore=is_anomaly", "alert.budget=" + budget])


def group_lines(group, paths, files, results, budget):
    """Found, faults, and false alerts of a group at a budget, with a line a file."""
    total = np.zeros(4)
    rows = sum(len(y) for _, y in files)
    for path, (x, y) in zip(paths, files):
        events, faults = results[path, budget], faults_of(y)
        alert = open_rows(events, len(y))
        false = sum(not y[e.row - 1] for e in opened(events))
        numbers = [hits(new_sensors(events), faults), len(faults), hits(spoke(events), faults), false]
        total += numbers
        print("  %-24s %-6s %3d of %3d   any %3d, covered %3d, open %.2f   false %4d, %6.2f per 1,000 rows" % (
            (os.path.basename(path)[:-7], budget) + tuple(numbers[:3]) + (
                sum(alert[a:b].any() for a, b in faults), alert[~y].mean(), false, 1000 * false / len(y))))
    return total, rows


def sets(pool):
    good = None
    print("\nskab and SMD: faults found (see alert_sets.py), false alerts")
    for group, (step, training, gap) in GROUPS.items():
        paths = [p for p in sorted(glob.glob(os.path.join(DATA, group + "_*.csv.gz"))) if "anomaly-free" not in p]
        if not paths:
            print("  %s SKIPPED: not in the data folder" % group)
            continue
        results = dict(pool.imap(run, [(path, budget) for path in paths for budget in BUDGETS]))
        files = [read(path) for path in paths]
        unit = len(files) if group == "skab" else sum(len(y) for _, y in files) * step / DAY
        train_of = lambda x: int(training if training > 1 else training * len(x))  # noqa: E731
        judged = len(files) if group == "skab" else sum(len(x) - train_of(x) for x, _ in files) * step / DAY
        for budget, rate in BUDGETS.items():
            total, _ = group_lines(group, paths, files, results, budget)
            false = total[3] / unit
            limits = [rate * judged, false * judged]
            found = {name: peers(files, name, train_of, gap, limits) for name in ("z", "ewma")}
            per = "file" if group == "skab" else "day"
            table_rows.row("%s at %s: faults found of %d, and a moving mean's in hindsight" % (group, budget, total[1]), int(total[0]), found["ewma"][1],
                           bar=">= %d" % MUST[group] if budget == "1/day" else "")
            table_rows.row("%s at %s: false alerts a %s" % (group, budget, per), round(false, 3), bar="<= 1" if budget == "1/day" else "")
            reached = budget != "1/day" or bool(total[0] >= MUST[group] and false <= 1)
            good = good is not False and reached
            print("  %-24s %-6s %3d of %3d, %.2f false a %s%s; peers at %d: z %d, ewma %d; at as many as ours: z %d, ewma %d" % (
                group, budget, total[0], total[1], false, "file" if group == "skab" else "day",
                " (must: %d at <= 1)" % MUST[group] if budget == "1/day" else "", rate, found["z"][0], found["ewma"][0],
                found["z"][1], found["ewma"][1]), flush=True)
    return good
