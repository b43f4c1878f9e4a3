"""Sets of classes whose rarer one is thinned at random to 1 % of the rows (and .1 %, shown only), for `make bench ONLY="quality rare"`.

From row 1 in the order of the file, without settings, beside HGB and SGD-b (quality_peers.py): area under ROC, average precision, log
loss beside that of the true share said for every row, and the cost of all decisions where a missed row of the rare class costs
1 / share (`decision.cost 1=1/share`), beside that of the cheaper constant decision. A probability that is not known yet is the share
so far. The halves are those of the names in turn; SETS=choose|report and STREAMS="elec2 magic" restrict it to some sets, PEERS=no
leaves the peers out.
"""
import json
import os
import subprocess
import zlib

import numpy

import quality_peers
import quality_sets
import results

THINNED = ("cod-rna30k", "covtype15k", "elec2", "magic", "rules", "weather")
SHARES = (0.01, 0.001)   # the first is judged
AREA, SAVING = 0.01, 0.9  # below the best peer's; of the cheaper constant decision's cost
LEAST = 1e-6             # of a probability in the log loss


def figures(y, score):
    """Area under precision and recall by the sum of its steps, ties taken together; best F1; recall above 0."""
    order = numpy.argsort(-score, kind="stable")
    last = numpy.append(numpy.flatnonzero(numpy.diff(score[order])), len(y) - 1)
    found = numpy.cumsum(y[order])[last]
    precision, recall = found / (last + 1.0), found / max(1, y.sum())
    area = float(numpy.sum(precision * numpy.diff(numpy.append(0, recall))))
    best = float(numpy.max(2 * precision * recall / numpy.maximum(precision + recall, 1e-300)))
    return area, best, float((score[y == 1] > 0).mean())


def thinned(name, share):
    """Rows of a set with the rarer of its classes, now class 1, thinned to this share."""
    s = next(s for s in quality_sets.SETS if s.name == name)
    _, x, y = s.make(os.environ["SVMSTREAM_DATA"])
    values, count = numpy.unique(y, return_counts=True)
    y = (y == values[count.argmin()]).astype(int)
    random = numpy.random.default_rng(zlib.crc32(("rare %s %g" % (name, share)).encode()))
    positive, negative = numpy.flatnonzero(y == 1), numpy.flatnonzero(y == 0)
    most = int(round(share / (1 - share) * len(negative)))
    rows = numpy.sort(numpy.append(negative, random.permutation(positive)[:most]))
    return x[rows], y[rows]


def area(y, score):
    """Under the receiver operating characteristic; ties count half."""
    values, place, count = numpy.unique(score, return_inverse=True, return_counts=True)
    rank = (numpy.cumsum(count) - (count - 1) / 2)[place]
    positive = y.sum()
    return float((rank[y == 1].sum() - positive * (positive + 1) / 2) / (positive * (len(y) - positive)))


def log_loss(y, p):
    p = numpy.clip(p, LEAST, 1 - LEAST)
    return float(-numpy.mean(numpy.where(y == 1, numpy.log(p), numpy.log(1 - p))))


def cost(y, decided, price):
    return float(numpy.sum(numpy.where(y == 1, price * (decided != 1), decided == 1)))


def lines(path, words):
    command = [os.environ["SVMSTREAM"], "run", "-q", "--in", "-", "--method", "auto", "--label", "label", "--novelty", "none"] + words
    return map(json.loads, subprocess.run(command, stdin=open(path), stdout=subprocess.PIPE, check=True).stdout.splitlines())


def without_settings(x, y, price, folder):
    """Probabilities of class 1, and decisions at the price."""
    path = os.path.join(folder, "thinned.csv")
    quality_sets.write(path, quality_sets.names_of(x.shape[1]), x, y, "classify")
    p = quality_peers.shares(y, 2)[:, 1]
    for row, line in enumerate(lines(path, [])):
        p[row] = line.get("proba", {}).get("1", p[row])
    decided = numpy.array([line["yhat"] == 1 for line in lines(path, ["--decision.cost", "1=%g" % price])])
    return p, decided.astype(int)


def measured(name, share, folder):
    """{contender: (area, average precision, log loss, cost)}, the price, the base rate's log loss, the constant decision's cost."""
    x, y = thinned(name, share)
    price, got = 1 / share, {}
    p, decided = without_settings(x, y, price, folder)
    got["auto"] = area(y, p), figures(y, p)[0], log_loss(y, p), cost(y, decided, price)
    for peer in quality_peers.PEERS if quality_peers.sklearn and (os.environ.get("PEERS") or results.pick("no", "")) != "no" else ():
        p = quality_peers.predict(peer, x, y, 2)[:, 1]
        # Probabilities of balanced classes are those of the price already.
        decided = p > 0.5 if peer == "SGD-b" else p * price > 1 - p
        got[peer] = area(y, p), figures(y, p)[0], log_loss(y, p), cost(y, decided, price)
    constant = min(cost(y, numpy.full(len(y), k), price) for k in (0, 1))
    return got, len(y), int(y.sum()), log_loss(y, numpy.full(len(y), y.mean())), constant


def bars(name, got, base, constant):
    mine, peers = got["auto"], [got[p] for p in got if p != "auto"]
    must = max(p[0] for p in peers) - AREA if peers else None
    yield "%s, area, best peer" % name, must and ">= %.4f" % must, "%.4f" % mine[0], must and mine[0] >= must
    yield "%s, log loss, base rate" % name, "<= %.5f" % base, "%.5f" % mine[2], mine[2] <= base
    yield "%s, cost, constant" % name, "<= %.0f" % (SAVING * constant), "%.0f" % mine[3], mine[3] <= SAVING * constant
    must = got["SGD-b"][3] if peers else None
    yield "%s, cost, SGD-b" % name, must and "<= %.0f" % must, "%.0f" % mine[3], must and mine[3] <= must


def chosen():
    half, only = os.environ.get("SETS") or "all", (os.environ.get("STREAMS") or results.pick("rules", "")).split()
    return [name for k, name in enumerate(sorted(THINNED))
            if half in ("all", ("choose", "report")[k % 2]) and (not only or name in only)]


def rows(folder):
    """Prints the figures and returns what is asked of them, as quality_bars.print_measures takes it."""
    found = []
    print("%-12s %-7s %6s %5s %-6s %8s %8s %8s %8s %9s %9s" % (
        "set", "half", "rows", "rare", "", "area", "ap", "logloss", "(base)", "cost", "(const.)"))
    for share in results.pick(SHARES[:1], SHARES[:1], SHARES):
        for name in chosen():
            got, n, positive, base, constant = measured(name, share, folder)
            half = ("choose", "report")[sorted(THINNED).index(name) % 2]
            for who, (auc, precision, loss, paid) in got.items():
                print("%-12s %-7s %6d %5d %-6s %8.4f %8.4f %8.5f %8.5f %9.0f %9.0f" % (
                    name, half, n, positive, who, auc, precision, loss, base, paid, constant), flush=True)
            if share == SHARES[0]:
                for at, what in enumerate(("area under ROC", "average precision", "log loss", "cost of the decisions")):
                    for peer in got:
                        if peer != "auto":
                            results.row("%s, auto and %s, %s at 1 %%" % (what, peer, name), float("%.4g" % got["auto"][at]), float("%.4g" % got[peer][at]))
                found += bars(name, got, base, constant)
    return found
