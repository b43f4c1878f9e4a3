"""Samples with seeds, and the messages that they are sent in: for recordings (tests/recorded/record) and for tests/oracle."""
import random
import struct

import msgpack

BEGIN = 1.6e9  # ts of the first sample
NAN = float("nan")
QUICK_NOVELTY = {"novelty.max": 20, "novelty.calibration": 60, "novelty.warmup": 30, "alert.p": 0.05, "alert.clear": 0.2, "alert.cooldown": 2}


def short(value):
    """With few digits in binary: recordings shall be small."""
    return round(value * 64) / 64


class Samples:
    """Two overlapping clouds that wander, with a burst far outside now and then, in any form that the wire has."""

    def __init__(self, seed, d=4, classes=(0, 1), form="array", unlabelled=0.15, burst=0.02, length=(2, 5)):
        self.random, self.d, self.classes, self.form = random.Random(seed), d, list(classes), form
        self.unlabelled, self.burst, self.length = unlabelled, burst, length
        self.made, self.far = 0, 0
        self.drift = [0.0] * d

    def values(self, k):
        r = self.random
        self.drift[r.randrange(self.d)] += r.gauss(0, 0.05)
        if self.far == 0 and self.made > 60 and r.random() < self.burst:
            self.far = r.randint(*self.length)
        size = 9 if self.far else 1
        self.far -= self.far > 0
        return [short(size * (m + r.gauss(0, 1) + (1.5 * k if j < 2 else 0))) for j, m in enumerate(self.drift)]

    def sample(self, **keys):
        r, i = self.random, self.made
        k = r.randrange(len(self.classes))
        s = {"x": self.shaped(self.values(k)), "id": i, "ts": BEGIN + 0.25 * i}
        if r.random() >= self.unlabelled:
            s["y"] = self.classes[k]
        if r.random() < 0.1:
            s["w"] = 0.5
        s.update(keys)
        self.made += 1
        return s

    def shaped(self, x):
        form = self.random.choice(["array", "float32", "float64", "columns"]) if self.form == "dense" else self.form
        if form == "float32":
            return msgpack.ExtType(1, struct.pack("<%df" % len(x), *x))
        if form == "float64":
            return msgpack.ExtType(2, struct.pack("<%dd" % len(x), *x))
        if form == "columns":
            return {j: v for j, v in enumerate(x) if self.random.random() < 0.8}
        if form == "sparse":  # more columns as time goes by
            return {self.random.randrange(4 + self.made // 20) if j else 0: v for j, v in enumerate(x)}
        if form == "named":
            known = NAMES[:4 + self.made // 25]
            return {n: v for n, v in zip(self.random.sample(known, min(len(x), len(known))), x)}
        return x


NAMES = ["speed", "heat", "load", "noise", "flow", "torque", "größe", "mass", "tilt", "glow", "hue", "draft"]


def put(message):
    return ["in", [message if isinstance(message, bytes) else msgpack.packb(message)]]


def ask(op, **keys):
    return ["ctl", [msgpack.packb(dict(keys, op=op))]]


class Numbered:
    """Puts samples into messages of several sources, with what goes wrong on a line: duplicates, gaps, refusals."""

    def __init__(self, samples, sources=("a", "b", "c"), batch=4, trouble=0.06):
        self.samples, self.sources, self.batch, self.trouble = samples, sources, batch, trouble
        self.next = dict.fromkeys(sources, 0)
        self.sent = []
        self.random = random.Random(len(sources))

    def message(self, elements):
        src = self.random.choice(self.sources)
        elements[0].update(src=src, n=self.next[src])
        self.next[src] += len(elements)
        self.sent.append(msgpack.packb(elements if len(elements) > 1 else elements[0]))
        return put(self.sent[-1])

    def wrong(self):
        r = self.random
        return r.choice([
            lambda s: dict(s, x=[NAN] * self.samples.d), lambda s: dict(s, y=1.5), lambda s: dict(s, w=-1), lambda s: dict(s, stream="other"),
            lambda s: dict(s, x=None), lambda s: dict(s, ts=4e9), lambda s: {"op": "forget", "id": 1000000}, lambda s: {"op": "rate", "id": 1}])

    def turn(self):
        """The next message or two."""
        r, moves = self.random, []
        count = r.choice([1, 1, r.randint(1, self.batch)])
        elements = [self.samples.sample() for _ in range(count)]
        if r.random() < self.trouble:
            elements[-1] = self.wrong()(elements[-1])
        late = r.random()
        if late < 0.08 and self.samples.made > 8:
            elements.append({"op": "label", "id": self.samples.made - r.randint(1, 6), "y": r.choice(self.samples.classes)})
        elif late < 0.12 and self.samples.made > 30:
            elements.append({"op": "forget", "id": self.samples.made - r.randint(5, 30)})
        moves.append(self.message(elements))
        what = r.random()
        if what < self.trouble / 2:
            moves.append(put(r.choice(self.sent[-20:])))  # a duplicate
        elif what < self.trouble:
            src = r.choice(self.sources)
            moves.append(put(dict(self.samples.sample(), src=src, n=self.next[src] + r.randint(1, 9))))  # a gap
        return moves

    def turns(self, count):
        return [m for _ in range(count) for m in self.turn()]
