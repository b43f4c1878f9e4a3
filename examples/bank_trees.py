#!/usr/bin/python3
"""Computes the scores of the boosted trees by itself, from the bank that a process publishes.

    svmstream run --publish.every 1 --score.members yes &
    examples/bank_trees.py tcp://127.0.0.1:5555 tcp://127.0.0.1:5556 [classes]

It sends samples of its own (two classes, or as many as it is asked for; 0: a regression), collects banks and scores, and for
each score whose bank it holds walks its row through the trees. A bank has the nodes of a forest when they are new, and
only their version later: forests are kept by name and version.
"""
import math
import struct
import sys

import msgpack
import numpy as np
import zmq

SAMPLES, D = 400, 4


def own_samples(classes):
    rng = np.random.default_rng(7)
    for i in range(SAMPLES):
        x = rng.normal(size=D) + [0, 1e9, 0, 20]
        value = abs(x[0]) + 0.5 * (x[2] > 0.4) * x[0]
        yield i, x, value if classes == 0 else int(min(classes - 1, value * classes / 2))


def doubles(ext):
    """ext 2: doubles, little-endian, one after the other."""
    return np.frombuffer(ext.data, "<f8")


def tree_value(nodes, i, row):
    """The leaf that a row reaches from node i: 12 bytes a node, see protocol, Trees of a bank."""
    while True:
        word, value, right = struct.unpack_from("<IfI", nodes, 12 * i)
        if word >> 31:
            return value
        x = row[word & 0x3fffffff]
        i += right if (not word >> 30 & 1 if math.isnan(x) else x > value) else 1


def forest_scores(forest, row):
    base = doubles(forest["base"])
    scores = base.copy()
    for t, first in enumerate(forest["first"]):
        scores[t % len(base)] += tree_value(forest["nodes"], first, row)
    return scores


def tree_scores(bank, forest, current, x, rows, last):
    """The member's scores of a row. current: the entry of this forest in the bank at hand."""
    trees = bank["trees"]
    raw = np.concatenate(([last], x)) if bank["task"] == "regress" else x
    origin = doubles(trees["origin"])
    row = (raw[:len(origin)] - origin).astype(np.float32)
    row[current.get("zero", [])] = 0
    f = forest_scores(forest, row)
    if bank["task"] == "regress":
        return f + trees["target"]
    limit = trees["limit"]
    if len(f) == 1:
        odds = np.clip(f[0] / 2, -limit, limit)
        return np.array([odds]) if rows == 1 else np.array([-odds, odds] + [-limit] * (rows - 2))
    e = np.exp(f - f.max())
    with np.errstate(divide="ignore"):
        odds = np.clip(np.log(e / (e.sum() - e)) / 2, -limit, limit)
    return np.concatenate((odds, [-limit] * (rows - len(f))))


def subscribe(sub):
    """Subscriptions travel: the last of them answers when all are in force, for the process repeats its stats."""
    for topic in (b"bank.", b"score.", b"stats."):
        sub.subscribe(topic)
    while not sub.recv_multipart()[0].startswith(b"stats."):
        pass
    sub.unsubscribe(b"stats.")


def compare(bank, forests, score, x):
    """How many members were compared, and the largest difference."""
    entries = {f["name"]: f for f in bank.get("trees", {}).get("forests", [])}
    compared, worst = 0, 0.0
    for name in ("trees-5000", "trees-all"):
        entry = entries.get(name) or entries.get("trees-5000")  # the same until it has trees of its own
        if entry is None or name not in score["members"]:
            continue
        published = np.array(score["members"][name])
        last = score["members"].get("last", [0])[0]
        forest = forests[entry["name"], entry["version"]]
        own = tree_scores(bank, forest, entry, x, len(published), last)
        compared += 1
        worst = max(worst, float(np.max(np.abs(own - published) / (1 + np.abs(published)))))
    return compared, worst


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    classes = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    context = zmq.Context()
    push, sub = context.socket(zmq.PUSH), context.socket(zmq.SUB)
    push.linger = sub.linger = 0
    sub.rcvtimeo, sub.rcvhwm = 10000, 0
    push.connect(sys.argv[1])
    sub.connect(sys.argv[2])
    subscribe(sub)

    x_of = {}
    for i, x, y in own_samples(classes):
        x_of[i] = x
        push.send(msgpack.packb({"id": i, "x": x.tolist(), "y": y}))

    banks, forests = {}, {}
    compared, worst, nodes, received = 0, 0.0, 0, 0
    while received < SAMPLES:
        topic, payload = sub.recv_multipart()
        event = msgpack.unpackb(payload, strict_map_key=False)
        if topic.startswith(b"bank."):
            banks = {event["version"]: event}
            for forest in event.get("trees", {}).get("forests", []):
                if "nodes" in forest:
                    forests[forest["name"], forest["version"]] = forest
                    nodes += 1
        elif topic.startswith(b"score."):
            received += 1
            bank = banks.get(event.get("bank"))
            if bank is not None and "members" in event and event["id"] in x_of:
                more, difference = compare(bank, forests, event, x_of[event["id"]])
                compared += more
                worst = max(worst, difference)
    print(f"{compared} scores of trees compared, {nodes} forests received, largest difference {worst:.1e}")
    sys.exit(0 if compared >= SAMPLES and worst <= 1e-6 else 1)


if __name__ == "__main__":
    main()
