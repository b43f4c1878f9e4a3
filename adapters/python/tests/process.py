"""A running `svmstream run` on free ports of the loopback, for the tests of the client. `with` ends
it, by its id.
"""
import os
import select
import signal
import subprocess
import time

SLOW = 5 if os.environ.get("SVMSTREAM_QUICK") else 1
PATIENCE = 20 * SLOW
ANY = "tcp://127.0.0.1:*"


class Process:
    """`addresses`: in, out and ctl as printed."""

    def __init__(self, program, folder=None, **settings):
        settings = {"in": ANY, "out": ANY, "ctl": ANY, "in.mode": "router", **settings}
        words = [program, "run"]
        for key, value in settings.items():
            words += ["--" + key, str(value)]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                        cwd=folder)
        self.addresses, text, end = {}, b"", time.monotonic() + PATIENCE
        try:
            while "in" not in self.addresses:
                ready = select.select([self.process.stderr], [], [],
                                      max(0, end - time.monotonic()))[0]
                chunk = os.read(self.process.stderr.fileno(), 65536) if ready else b""
                assert chunk, text
                text += chunk
                for line in text.decode().split("\n")[:-1]:
                    key, _, rest = line.partition(" ")
                    if key in ("in", "out", "ctl"):
                        self.addresses[key] = rest.split(" ")[0]
        except BaseException:
            self.kill()
            raise

    @property
    def ctl(self):
        return self.addresses["ctl"]

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


def rows(count, seed=1, classes=2, d=4):
    """(x, y) as lists of floats: classes that a line separates but for noise."""
    import random
    r = random.Random(seed)
    for _ in range(count):
        x = [r.gauss(0, 1) for _ in range(d)]
        yield x, min(classes - 1, int(abs(x[0] + x[1] + 0.3 * r.gauss(0, 1))))
