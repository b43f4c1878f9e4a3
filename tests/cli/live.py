"""A running svmstream for tests: starts it on free ports, talks to it, ends it. Every wait is for a condition and has a bound."""
import contextlib
import gzip
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time

import msgpack
import zmq

PROGRAM = os.environ.get("SVMSTREAM", "build/svmstream")
EXAMPLES = os.environ.get("SVMSTREAM_EXAMPLES", "examples")
WEATHER = os.path.join(EXAMPLES, "weather.csv.gz")
SLOW = 5 if os.environ.get("SVMSTREAM_QUICK") else 1  # a sanitized build takes longer
PATIENCE = 20 * SLOW  # seconds that any condition may take
ANY = "tcp://127.0.0.1:*"

context = zmq.Context()
_results, _lock = {"n": 0, "failed": 0}, threading.Lock()


def check(good, text, *details):
    """One test point, of any thread."""
    with _lock:
        _results["n"] += 1
        print("%s %d - %s" % ("ok" if good else "not ok", _results["n"], text))
        if not good:
            _results["failed"] += 1
            for d in details:
                print("#   %r" % (d,))
        sys.stdout.flush()
    return good


def leave_out(what, why):
    """Ends a test whose servers are absent: skipped, or failed where all of them must run (.ci/run)."""
    must = os.environ.get("SVMSTREAM_SERVERS") == "needed"
    print("not ok 1 - %s: %s\n1..1" % (what, why) if must else "ok 1 - %s # SKIP %s\n1..1" % (what, why))
    sys.exit(1 if must else 0)


def finish():
    print("1..%d" % _results["n"])
    sys.stdout.flush()
    context.destroy(linger=0)
    sys.exit(1 if _results["failed"] else 0)


def weather_rows(limit=None):
    """The weather data as (features, label)."""
    rows = []
    with gzip.open(WEATHER, "rt") as f:
        f.readline()
        for line in f:
            cells = [float(c) for c in line.split(",")]
            rows.append((cells[:-1], int(cells[-1])))
            if limit and len(rows) == limit:
                break
    return rows


def pack(x, y=None, **keys):
    sample = dict(keys, x=x)
    if y is not None:
        sample["y"] = y
    return msgpack.packb(sample)


class Timeout(Exception):
    pass


def deadline(seconds=None):
    return time.monotonic() + (seconds or PATIENCE)


class Run:
    """`svmstream run` with sockets on free ports; `with` ends it."""
    program, environment = PROGRAM, None  # others, for who inherits

    def __init__(self, *flags, **settings):
        for key in ("in", "out", "ctl"):
            settings.setdefault(key, ANY)
        self.mode = settings.get("in.mode", "pull")
        words = [self.program, "run"] + list(flags)
        for key, value in settings.items():
            words += ["--" + key, str(value)]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=self.environment)
        self.end_of_process = os.pidfd_open(self.process.pid)
        self.log, self.buffer = [], b""
        self.sockets = []
        self.address = {}
        try:
            while "in" not in self.address:
                key, _, rest = self.log_line().partition(" ")
                if key in ("in", "out", "ctl"):
                    self.address[key] = rest.split(" ")[0]
        except Exception:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for s in self.sockets:
            s.close(0)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stderr.close()
        if self.end_of_process is not None:
            os.close(self.end_of_process)
            self.end_of_process = None

    def log_line(self):
        """The next line on standard error."""
        end = deadline()
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.process.stderr], [], [], max(0, end - time.monotonic()))
            chunk = os.read(self.process.stderr.fileno(), 65536) if ready else b""
            if not chunk:
                raise Timeout("no further line on stderr; so far: %r %r" % (self.log, self.buffer))
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\n", 1)
        self.log.append(line.decode())
        return self.log[-1]

    def socket(self, kind, key, **options):
        s = context.socket(kind)
        s.setsockopt(zmq.LINGER, int(1000 * PATIENCE))
        s.setsockopt(zmq.RCVTIMEO, int(1000 * PATIENCE))
        s.setsockopt(zmq.SNDTIMEO, int(1000 * PATIENCE))
        for name, value in options.items():
            s.setsockopt(getattr(zmq, name), value)
        s.connect(self.address[key])
        self.sockets.append(s)
        return s

    def push(self):
        return self.socket(zmq.PUSH, "in")

    def subscribe(self, *topics):
        """A subscriber that is known to be connected: the process has told it the retained stats."""
        s = self.socket(zmq.SUB, "out", RCVHWM=1000000)
        for t in topics:
            s.setsockopt(zmq.SUBSCRIBE, t.encode())
        self.settle(s)
        return s

    def settle(self, s):
        """Waits until the subscriptions of `s` are in force: they come in order, so one more whose answer arrives is the sign."""
        self.ctl("publish")  # there are stats from now on
        s.setsockopt(zmq.SUBSCRIBE, b"stats.")
        end = deadline()
        held = []
        while True:
            event = self.event(s, end=end)
            if event[0].startswith("stats."):
                break
            held.append(event)
        s.setsockopt(zmq.UNSUBSCRIBE, b"stats.")
        self.held = held

    def event(self, s, end=None):
        """(topic, payload) of the next event."""
        end = end or deadline()
        if not s.poll(max(0, int(1000 * (end - time.monotonic())))):
            raise Timeout("no event")
        topic, payload = s.recv_multipart()
        return topic.decode(), msgpack.unpackb(payload, strict_map_key=False)

    def events(self, s, kind, count):
        """The next `count` events of a kind; others are skipped."""
        end, found = deadline(), []
        while len(found) < count:
            topic, payload = self.event(s, end)
            if topic.startswith(kind + "."):
                found.append(payload)
        return found

    def rest(self, s):
        """All events that are left, of a process that has ended."""
        found = []
        while s.poll(500):
            found.append(self.event(s))
        return found

    def ctl(self, op, **keys):
        if not hasattr(self, "_ctl"):
            self._ctl = self.socket(zmq.REQ, "ctl")
        self._ctl.send(msgpack.packb(dict(keys, op=op)))
        return msgpack.unpackb(self._ctl.recv(), strict_map_key=False)

    def wait(self, **figures):
        """Asks for the status until the named figures have these values. Returns the status."""
        return self.until("%r" % figures, lambda status: all(status.get(k) == v for k, v in figures.items()))

    def until(self, text, condition, longest=0.02):
        """Asks for the status until `condition` holds for it, ever less often: who asks without a pause takes the processor that the
        process needs. Returns the status."""
        end, pause = deadline(), 0.0005
        while time.monotonic() < end:
            status = self.ctl("status")
            if condition(status):
                return status
            select.select([self.end_of_process], [], [], pause)
            pause = min(2 * pause, longest)
        raise Timeout("%s: never; the last status: %r" % (text, status))

    def errors(self):
        return self.ctl("status")["errors"]

    def end(self, how=signal.SIGTERM):
        """Ends it cleanly; returns (exit code, all of stderr)."""
        if how is not None:
            self.process.send_signal(how)
        end = deadline()
        while True:
            ready, _, _ = select.select([self.process.stderr], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise Timeout("it does not end")
            chunk = os.read(self.process.stderr.fileno(), 65536)
            if not chunk:
                break
            self.buffer += chunk
        self.log += self.buffer.decode().splitlines()
        return self.process.wait(PATIENCE), self.log


def command(*words, input=None, timeout=None):
    """Runs `svmstream words...`; returns (exit code, stdout, stderr) as text."""
    done = subprocess.run([PROGRAM] + [str(w) for w in words], input=input, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=timeout or 3 * PATIENCE,
                          **({} if input is not None else {"stdin": subprocess.DEVNULL}))
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@contextlib.contextmanager
def case(text):
    """A test whose exceptions are failures of its own, not of the file. Says how long it took."""
    begun = time.monotonic()
    try:
        yield
    except Exception as e:  # noqa: BLE001: whatever happened is the failure
        check(False, text + ": " + type(e).__name__, str(e))
    with _lock:
        print("# %s: %.1f s" % (text, time.monotonic() - begun))


def doubles(ext):
    return struct.unpack("<%dd" % (len(ext.data) // 8), ext.data)
