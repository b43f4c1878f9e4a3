"""A running `svmstream merge` for tests, sums records as parts publish them, and what the model of all rows is."""
import os
import struct
import subprocess

import msgpack
import numpy as np
import zmq
from live import ANY, PATIENCE, PROGRAM, Run, context


def packed(values):
    return msgpack.ExtType(2, struct.pack("<%dd" % len(values), *values))


def record(part, x, y, offset=None, epoch=1, seq=0, part_epoch=1, **keys):
    """The payload of a sums event over dense rows x (n, d) with labels y; classes in the order of their first row."""
    x = np.asarray(x, dtype=float).reshape(len(y), -1)
    n, d = x.shape
    classes = list(dict.fromkeys(y))
    center = x.mean(axis=0)
    z = x - center
    square = z.T @ z
    of = [z[[label == c for label in y]] for c in classes]
    payload = {"v": 1, "stream": "s", "epoch": epoch, "seq": seq, "ts": 0.0, "part": part, "part_epoch": part_epoch,
               "offset": n if offset is None else offset, "n": n, "task": "classify", "kind": "dense", "window": 1000, "C": 10.0,
               "scale": "standard", "d": d, "features": None, "schema_hash": 0, "center": packed(center), "weight": float(n),
               "sum": packed(z.sum(axis=0)), "square": packed([square[i, j] for i in range(d) for j in range(i + 1)]),
               "classes": classes, "class_weight": packed([float(len(o)) for o in of]),
               "class_sum": packed(np.concatenate([o.sum(axis=0) for o in of]))}
    payload.update(keys)
    return msgpack.packb(payload)


def solve(x, y, C=10.0, scale="standard"):
    """(W, b) of all rows with labels 0 and 1, in long double."""
    x = np.asarray(x, dtype=np.longdouble)
    n, d = x.shape
    mean = x.mean(axis=0) if scale == "standard" else np.zeros(d, np.longdouble)
    dev = np.sqrt(((x - mean) ** 2).mean(axis=0)) if scale == "standard" else np.ones(d, np.longdouble)
    z = np.concatenate([np.ones((n, 1), np.longdouble), (x - mean) / dev], axis=1)
    t = np.where(np.asarray(y) == 1, 1, -1).astype(np.longdouble)
    g = z.T @ z + np.eye(d + 1, dtype=np.longdouble) / (2 * np.longdouble(C))
    r = z.T @ t
    for i in range(d + 1):  # Gauss-Jordan: numpy solves in double only
        r[i] /= g[i, i]
        g[i] = g[i] / g[i, i]
        for k in range(d + 1):
            if k != i:
                r[k] -= g[k, i] * r[i]
                g[k] = g[k] - g[k, i] * g[i]
    W = r[1:] / dev
    return W, r[0] - W @ mean


class Part:
    """A publisher of sums, in this process."""

    def __init__(self, name):
        self.name, self.socket = name, context.socket(zmq.XPUB)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.XPUB_VERBOSE, 1)
        self.socket.bind("tcp://127.0.0.1:*")
        self.address = self.socket.getsockopt(zmq.LAST_ENDPOINT).decode().rstrip("\0")

    def subscribed(self):
        """Waits until a merge has subscribed."""
        while True:
            assert self.socket.poll(int(1000 * PATIENCE)), "nobody subscribes"
            if self.socket.recv() == b"\x01sums.":
                return

    def send(self, payload):
        self.socket.send_multipart([b"sums.s.", payload])

    def close(self):
        self.socket.close(0)


class Merge(Run):
    """`svmstream merge` with sockets on free ports."""

    def __init__(self, *addresses, **settings):
        for key in ("out", "ctl"):
            settings.setdefault(key, ANY)
        words = [PROGRAM, "merge"] + list(addresses)
        for key, value in settings.items():
            words += ["--" + key, str(value)]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.end_of_process = os.pidfd_open(self.process.pid)
        self.log, self.buffer, self.sockets, self.address = [], b"", [], {}
        try:
            begun = 0
            while begun < len(addresses):
                key, _, rest = self.log_line().partition(" ")
                if key in ("out", "ctl"):
                    self.address[key] = rest
                begun += key == "from"
        except Exception:
            self.close()
            raise

    def model(self):
        return self.ctl("model").get("model")

    def parts(self):
        return {p["name"]: p for p in self.ctl("parts")["parts"]}


def held(rows, window=1000):
    """The newest rows of a list, as arrays of features and labels."""
    return np.array([x for x, y in rows[-window:]]), [y for x, y in rows[-window:]]
