#!/usr/bin/python3
"""Boosted trees next to scikit-learn's HistGradientBoosting: fitted to 5,000 rows of a stream, scored on the next 1,000, at three places.

usage: trees_peer.py BENCH_TREES DATA [NAME...]

Both with 100 trees of 31 leaves, rate .1, 20 rows a leaf, 255 bins; then what 30 rounds of 16 leaves with the defaults keep. A regression's
figures are 1 - (error / deviation)^2, and error / deviation squared.
"""
import os
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

import quality_sets
import results

SETS = ["covtype15k", "magic", "connect-4", "splice", "tree", "waveform", "rbf-moving", "rare5", "friedman", "nyc-taxi"]
OURS = {"100 x 31": [100, 31, 255, 0.1, 1e-6, 20], "30 x 16": [30, 16, 64, 0.3, 3, 5]}


def ours(program, options):
    def fit(x, y, classes, z):
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("fit", "test")]
            np.savetxt(paths[0], np.column_stack([x, y]), "%.9g", ",")
            np.savetxt(paths[1], np.column_stack([z, np.zeros(len(z))]), "%.9g", ",")
            run = subprocess.run([program, *paths, str(classes), *map(str, options)], check=True, capture_output=True, text=True)
        s = np.array([[float(v) for v in line.split(",")] for line in run.stdout.splitlines()])
        if classes == 2:
            s = np.column_stack([0 * s, s])
        if classes:
            s = np.exp(s - s.max(1, keepdims=True))
            s /= s.sum(1, keepdims=True)
        return s, float(run.stderr)
    return fit


def peer(x, y, classes, z):
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    begin = time.monotonic()
    model = (HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor)(early_stopping=False).fit(x, y)
    took = 1e3 * (time.monotonic() - begin)
    if not classes:
        return model.predict(z)[:, None], took
    p = np.zeros((len(z), classes))
    p[:, model.classes_.astype(int)] = model.predict_proba(z)
    return p, took


def figures(s, y, spread):
    if s.shape[1] == 1:
        rest = np.mean((s[:, 0] - y) ** 2) / spread
        return 1 - rest, rest
    return np.mean(s.argmax(1) == y), -np.mean(np.log(np.clip(s[np.arange(len(y)), y.astype(int)], 1e-6, 1)))


def main():
    warnings.filterwarnings("ignore")
    program, data, only = sys.argv[1], sys.argv[2], sys.argv[3:] or results.pick(["rare5"], SETS)
    learners = {"sklearn": peer, **{name: ours(program, o) for name, o in OURS.items()}}
    print("\n%-16s" % "accuracy, loss, ms" + "".join("%24s" % name for name in learners))
    sums = {name: [] for name in learners}
    for s in (s for s in quality_sets.SETS if s.name in only):
        _, x, y = s.make(data)
        x, y, classes = np.asarray(x, np.float32), np.asarray(y, float), 0
        if s.task == "classify":
            known, y = np.unique(y, return_inverse=True)
            classes = len(known)
        line = "%-16s" % s.name
        for name, learner in learners.items():
            found = []
            for end in [int(len(y) * share) for share in results.pick((.6,), (.35, .6, .9))]:
                a = max(0, end - 5000)
                scores, took = learner(x[a:end], y[a:end], classes, x[end:end + 1000])
                found.append((*figures(scores, y[end:end + 1000], np.var(y[a:end])), took))
            sums[name].append(np.mean(found, 0))
            line += "%12.4f %.4f %6.1f" % tuple(sums[name][-1])
        print(line, flush=True)
    for at, what in enumerate(("accuracy", "log loss", "ms of a fit")):
        results.row("boosted trees, mean %s of %d sets, 100 trees of 31 leaves, ours and scikit-learn's HGB" % (what, len(sums["sklearn"])),
                    *[float("%.4g" % np.mean(sums[name], 0)[at]) for name in ("100 x 31", "sklearn")])
    print("%-16s" % "mean" + "".join("%12.4f %.4f %6.1f" % tuple(np.mean(sums[name], 0)) for name in learners))


if __name__ == "__main__":
    main()
