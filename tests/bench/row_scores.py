"""Part `auc`: area under the ROC of each score of a row, on eleven public sets, next to the offline one-class model.

The sets and their split are those of bench_novelty_stream: annthyroid, mammography, shuttle (shuffled, half of the normal rows first),
three of skab, three machines of SMD, and two of NAB (in their order; the first 30 % are not counted, there the offline model is
trained). The stream gets each row once, with its time where the set has one; it does not know where the training part ends. The
offline model of NAB's sets has the last 12 and 48 values as a row, the stream has one. A row without a score is least anomalous.
"""
import csv
import gzip
import os
import subprocess
import tempfile

import numpy as np

import alert_runs
import results as table_rows
from alert_runs import DATA, PROGRAM

SCORES = ["novelty", "p", "surprise", "alarm", "anomaly"]
MUST = 0.83


def area(score, y):
    """Area under the ROC: the share of pairs in the right order; equal scores count half."""
    _, group, count = np.unique(np.where(np.isnan(score), -np.inf, score), return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[group]
    hits = int(y.sum())
    return (rank[y].sum() - hits * (hits + 1) / 2) / (hits * (len(y) - hits))


def labels(path):
    with gzip.open(path, "rt", newline="") as f:
        return np.array([row["is_anomaly"] for row in csv.DictReader(f)], float) > 0


def run(job):
    """Name, offline area, and the area by the name of each score that the stream has."""
    name, count, offline, folder = job
    path = os.path.join(folder, name + ".csv")
    if name.startswith("odds"):
        with open(os.path.join(folder, name), "rb") as f:
            n, _, d = np.fromfile(f, np.int64, 3)
            x = np.fromfile(f, np.float64, n * d).reshape(n, d)
            y = np.fromfile(f, np.uint8, n) > 0
        alert_runs.write(path, {"x%d" % (j + 1): x[:, j] for j in range(d)}, 6)
        flags = []
    else:
        source = os.path.join(DATA, name + ".csv.gz")
        y, flags = labels(source), ["ts=t", "ignore=is_anomaly"]
        with gzip.open(source, "rb") as f, open(path, "wb") as to:
            to.write(f.read())
    _, scores = alert_runs.play_scores(path, flags, SCORES, len(y))
    scores["p"] = -scores["p"]
    return name, offline, {k: area(s[-count:], y[-count:]) for k, s in scores.items() if not np.isnan(s).all()}


def auc(pool):
    with tempfile.TemporaryDirectory() as folder:
        split = os.path.join(os.path.dirname(PROGRAM), "bench_novelty_stream")
        text = subprocess.run([split, "rows", folder], stdout=subprocess.PIPE, text=True, check=True).stdout
        jobs = [(name, int(count), float(offline), folder) for name, count, offline in map(str.split, text.splitlines())]
        if not jobs:
            print("\nAUC SKIPPED: no set is in the data folder")
            return None
        results = list(pool.imap(run, jobs, 1))
    have = [k for k in SCORES if all(k in areas for _, _, areas in results)]
    print("\nArea under the ROC of a row's scores, %d public sets\n  %-40s %8s %s" % (
        len(results), "set", "offline", " ".join("%8s" % k for k in have)))
    for name, offline, areas in results:
        print("  %-40s %8.3f %s" % (name, offline, " ".join("%8.3f" % areas[k] for k in have)))
    mean = {k: float(np.mean([areas[k] for _, _, areas in results])) for k in have}
    best = max(mean, key=mean.get)
    print("  %-40s %8.3f %s" % ("mean", np.mean([offline for _, offline, _ in results]), " ".join("%8.3f" % mean[k] for k in have)))
    print("  best of the stream: %s %.3f (must: %.2f)" % (best, mean[best], MUST), flush=True)
    table_rows.row("area under ROC of a row's %s, mean of %d sets, and offline" % (best, len(results)), round(mean[best], 3),
                   round(float(np.mean([offline for _, offline, _ in results])), 3), bar=">= %.2f" % MUST)
    return bool(mean[best] >= MUST)
