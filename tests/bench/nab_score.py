#!/usr/bin/python3
"""Scores of detectors on the Numenta Anomaly Benchmark (NAB: 58 series, 116 windows with anomalies), by its definition.

usage: nab_score.py NAB [DETECTOR...]     published detectors, from NAB/results (default: four of them), against what NAB published
       nab_score.py NAB --scores FOLDER   a detector whose scores lie in FOLDER/GROUP/NAME.csv, column anomaly_score, one a row

NAB is a clone of github.com/numenta/NAB. A detector gives each row a score in [0, 1]; a row with a score of the threshold or more
is a detection. The first 15 % of a file's rows, at most 750, are for learning: nothing in them counts. (Lavin, Ahmad: Evaluating
real-time anomaly detection algorithms, 2015.)

Score. With s(y) = 2 / (1 + exp(5 y)) - 1: the best detection in a window earns tp s(y) / s(-1), where y goes from -1 at its first
row to nearly 0 at its last; a window without one costs fn; each detection outside costs -fp s(y), y the distance from the last
window before it in widths of that window, and fp without one or beyond 3. One threshold for all files, the best one, for each of
three profiles of costs. 0 is the score of no detection at all, 100 that of all windows at their first row and nothing else.

At one false alert a week. The threshold is the lowest at which at most one false alert a week of data (rows for learning left out)
happens over all files together. A detection outside the windows opens a false alert, which takes up all such detections of the day
after it: what goes on and on is a false alert a day. A window counts as found by any detection in it.

Halves: even and odd places of the list of files in the order of their names, each with its own threshold and normalisation. The
choices of a detector may look at the even half; the odd one is for reports.
"""
import csv
import datetime
import json
import os
import sys
from collections import namedtuple

import numpy as np

PROFILES = {"standard": (1.0, 0.11, 1.0), "reward_low_FP_rate": (1.0, 0.22, 1.0), "reward_low_FN_rate": (1.0, 0.11, 2.0)}  # tp, fp, fn
HALVES = {"all": lambda at: True, "even": lambda at: at % 2 == 0, "odd": lambda at: at % 2 == 1}
WEEK, DAY = 7 * 86400, 86400
DETECTORS = ["numenta", "htmjava", "randomCutForest", "windowedGaussian"]

# name: GROUP/NAME.csv; time: seconds; windows: (first row, last row); probation: rows that do not count
File = namedtuple("File", "name time value windows probation")


# ---- the corpus

def seconds(text):
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.timezone.utc).timestamp()


def column(path, name):
    with open(path, newline="") as f:
        return [row[name] for row in csv.DictReader(f)]


def read_file(nab, name, windows):
    path = os.path.join(nab, "data", name)
    time = [seconds(t) for t in column(path, "timestamp")]
    first = {}
    for at, t in enumerate(time):
        first.setdefault(t, at)
    rows = [(first[seconds(a)], first[seconds(b)]) for a, b in windows]
    return File(name, np.array(time), np.array(column(path, "value"), float), rows, min(int(0.15 * len(time)), 750))


def corpus(nab):
    """All files in the order of their names."""
    with open(os.path.join(nab, "labels", "combined_windows.json")) as f:
        windows = json.load(f)
    return [read_file(nab, name, windows[name]) for name in sorted(windows)]


def published(nab, detector, files):
    """The scores of a detector that NAB has results of, a file each."""
    scores = []
    for f in files:
        group, name = f.name.split("/")
        scores.append(np.array(column(os.path.join(nab, "results", detector, group, detector + "_" + name), "anomaly_score"), float))
    return scores


# ---- the score

def sigmoid(y):
    return np.where(y > 3, -1.0, 2 / (1 + np.exp(5 * np.minimum(y, 3))) - 1)


def worth(f):
    """What a detection in each row is worth, before the costs (windows 0..1, outside -1..0), and the row's window, -1 outside."""
    n = len(f.time)
    window, row = np.full(n, -1), np.full(n, -1.0)
    for k, (begin, end) in enumerate(f.windows):
        width = end - begin + 1
        at = np.arange(begin, end + 1)
        window[begin:end + 1] = k
        row[begin:end + 1] = sigmoid((at - end - 1) / width) / sigmoid(-1)
        after = np.arange(end + 1, f.windows[k + 1][0] if k + 1 < len(f.windows) else n)
        row[after] = sigmoid((after - end) / max(width - 1, 1))
    return row, window


def changes(f, score, costs):
    """By how much the sum changes when each row becomes a detection, rows taken from the highest score down."""
    tp, fp, fn = costs
    row, window = worth(f)
    order = np.argsort(-score[f.probation:], kind="stable") + f.probation
    change = np.where(window[order] < 0, row[order] * fp, 0.0)
    for k in range(len(f.windows)):
        at = np.flatnonzero(window[order] == k)
        best = np.maximum.accumulate(np.concatenate([[-fn], row[order[at]] * tp]))
        change[at] = np.diff(best)
    return score[order], change


def nab_score(files, scores, profile="standard", threshold=None):
    """(score, threshold): the best threshold, or the one given."""
    tp, fp, fn = PROFILES[profile]
    count = sum(len(f.windows) for f in files)
    parts = [changes(f, s, (tp, fp, fn)) for f, s in zip(files, scores)]
    score, change = (np.concatenate(p) for p in zip(*parts))
    order = np.argsort(-score, kind="stable")
    score, total = score[order], np.cumsum(change[order])
    last = np.append(np.flatnonzero(np.diff(score)), len(score) - 1)  # of each value; equal scores are detections together
    if threshold is None:
        best = last[np.argmax(total[last])]
        threshold, gain = (score[best], total[best]) if total[best] > 0 else (np.inf, 0.0)
    else:
        below = last[score[last] >= threshold]
        gain = total[below[-1]] if len(below) else 0.0
    return 100 * gain / (count * (tp + fn)), threshold


def false_alerts(files, scores, threshold):
    """False alerts and weeks."""
    alerts, weeks = 0, 0.0
    for f, score in zip(files, scores):
        _, window = worth(f)
        at = np.flatnonzero((score >= threshold) & (window < 0) & (np.arange(len(score)) >= f.probation))
        until = -np.inf
        for t in np.sort(f.time[at]):
            if t >= until:
                alerts, until = alerts + 1, t + DAY
        weeks += (f.time[-1] - f.time[f.probation]) / WEEK
    return alerts, weeks


def found_at(files, scores, rate=1.0):
    """Windows found, windows, threshold, at so many false alerts a week at most."""
    values = np.unique(np.concatenate([s[f.probation:] for f, s in zip(files, scores)]))
    low, high = 0, len(values)  # values[high:] are allowed
    while low < high:
        middle = (low + high) // 2
        alerts, weeks = false_alerts(files, scores, values[middle])
        low, high = (low, middle) if alerts <= rate * weeks else (middle + 1, high)
    threshold = values[low] if low < len(values) else np.inf
    hits = [score[max(a, f.probation):b + 1].max(initial=-np.inf) >= threshold
            for f, score in zip(files, scores) for a, b in f.windows]
    return int(sum(hits)), len(hits), threshold


def half(files, scores, name):
    keep = [at for at in range(len(files)) if HALVES[name](at)]
    return [files[at] for at in keep], [scores[at] for at in keep]


# ---- tables

HEAD = "  %-18s %-5s %9s %9s %9s %17s   %s" % ("detector", "files", "standard", "low FP", "low FN", "found at 1/week", "threshold")


def lines(detector, files, scores):
    """A line a half: the three profiles, the windows found at one false alert a week, the standard profile's threshold."""
    for name in HALVES:
        some = half(files, scores, name)
        three = [nab_score(*some, profile) for profile in PROFILES]
        hits, count, _ = found_at(*some)
        yield "  %-18s %-5s %9.1f %9.1f %9.1f %6d of %3d %4.0f %%   %.4g" % (
            detector, name, *(score for score, _ in three), hits, count, 100 * hits / count, three[0][1])


def check(nab, detector, files, scores):
    """Our score at the best threshold and at the one that NAB used, against what NAB published; whether the latter agree to 0.1."""
    with open(os.path.join(nab, "results", "final_results.json")) as f:
        theirs = json.load(f)[detector]
    with open(os.path.join(nab, "config", "thresholds.json")) as f:
        used = json.load(f)[detector]
    cells, agree = [], True
    for profile in PROFILES:
        best, there = nab_score(files, scores, profile)[0], nab_score(files, scores, profile, used[profile]["threshold"])[0]
        cells.append("%.2f %.2f %.2f" % (best, there, theirs[profile]))
        agree = agree and min(abs(best - theirs[profile]), abs(there - theirs[profile])) < 0.1
    print("  %-18s " % detector + " | ".join("%20s" % c for c in cells) + ("" if agree else "   DIFFERS"), flush=True)
    return agree


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 2
    nab, names = sys.argv[1], sys.argv[2:] or DETECTORS
    files = corpus(nab)
    if names[0] == "--scores":
        named = [(names[1], [np.array(column(os.path.join(names[1], f.name), "anomaly_score"), float) for f in files])]
    else:
        named = [(name, published(nab, name, files)) for name in names]
        print("Our score at the best threshold, ours at NAB's threshold, NAB's published one\n  %-18s %20s | %20s | %20s" % (
            ("detector",) + tuple(PROFILES)))
        for name, scores in named:
            check(nab, name, files, scores)
    print(HEAD)
    for name, scores in named:
        for text in lines(os.path.basename(name.rstrip("/")), files, scores):
            print(text, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
