#!/usr/bin/python3
"""Scores samples by itself with a received model, and gets what the process says.

    svmstream run --method alsvm --publish.every 1 &
    examples/subscriber.py tcp://127.0.0.1:5555 tcp://127.0.0.1:5556

It sends samples of its own (three classes), collects models and scores, and for each score whose model version it holds
computes W x + b. A score names the version that made it; with publish.every 1 every version is published.
"""
import sys

import msgpack
import numpy as np
import zmq

SAMPLES, D = 300, 4


def own_samples():
    rng = np.random.default_rng(7)
    centre = np.array([[0, 0, 1, 0], [3, 0, 0, 1], [0, 3, -1, 0]])
    names = ["red", "green", "blue"]
    for i in range(SAMPLES):
        k = int(rng.integers(3))
        yield i, centre[k] + rng.normal(size=D), names[k]


def packed(ext):
    """ext 2: doubles, little-endian, one after the other."""
    return np.frombuffer(ext.data, "<f8")


def weights(model):
    """(W, b): one row for two classes, a row for each class otherwise."""
    b = model["b"]
    b = packed(b) if isinstance(b, msgpack.ExtType) else np.array([b])
    return packed(model["W"]).reshape(len(b), model["d"]), b


def subscribe(sub):
    """Subscriptions travel: the last of them answers when all are in force, for the process repeats its stats."""
    for topic in (b"model.", b"score.", b"stats."):
        sub.subscribe(topic)
    while not sub.recv_multipart()[0].startswith(b"stats."):
        pass
    sub.unsubscribe(b"stats.")


def listen(sub):
    """Models by version and scores by id, until the last sample's score has come."""
    models, scores = {}, {}
    while SAMPLES - 1 not in scores:
        topic, payload = sub.recv_multipart()
        event = msgpack.unpackb(payload, strict_map_key=False)
        if topic.startswith(b"model."):
            models.setdefault(event["version"], event)
        elif topic.startswith(b"score."):
            scores[event["id"]] = event
    return models, scores


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    context = zmq.Context()
    push, sub = context.socket(zmq.PUSH), context.socket(zmq.SUB)
    push.linger = sub.linger = 0
    sub.rcvtimeo, sub.rcvhwm = 10000, 0
    push.connect(sys.argv[1])
    sub.connect(sys.argv[2])
    subscribe(sub)

    x_of = {}
    for i, x, y in own_samples():
        x_of[i] = x
        push.send(msgpack.packb({"id": i, "x": x.tolist(), "y": y}))
    models, scores = listen(sub)

    compared = equal = right = 0
    for i, published in scores.items():
        model = models.get(published["model"])
        if model is None or model["d"] != D:
            continue
        w, b = weights(model)
        own = w @ x_of[i] + b
        compared += 1
        equal += bool(np.allclose(own, published["scores"], rtol=1e-9, atol=1e-9))
        best = int(np.argmax(own)) if len(own) > 1 else int(own[0] > 0)
        right += model["classes"][best] == published["yhat"]
    print(f"{compared} scores compared, {equal} equal, {right} with the same class")
    sys.exit(0 if compared >= SAMPLES // 2 and equal == right == compared else 1)


if __name__ == "__main__":
    main()
