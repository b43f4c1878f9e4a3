"""Redis servers and svmstream-redis processes for tests: started on free ports, spoken to, ended. Python has no client here, so this is one."""
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import msgpack  # noqa: E402
from live import Timeout, deadline  # noqa: E402

ADAPTER = os.path.join(os.environ.get("SVMSTREAM_BUILD", "build"), "svmstream-redis")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def absent():
    """Why these tests cannot run here; None: they can."""
    if not os.path.exists(ADAPTER):
        return "svmstream-redis was not built: libhiredis-dev is not installed"
    return None if shutil.which("redis-server") else "there is no redis-server"


class Refused(Exception):
    """An error of the server."""


class Client:
    """One connection."""

    def __init__(self, port, *login):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.file = self.socket.makefile("rb")
        if login:
            self("AUTH", *login)

    def __call__(self, *words):
        words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        return self.reply()

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server hung up")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            raise Refused(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if int(rest) < 0 else self.file.read(int(rest) + 2)[:-2]
        return None if int(rest) < 0 else [self.reply() for _ in range(int(rest))]

    def close(self):
        self.file.close()
        self.socket.close()

    def table(self, *words):
        """A reply of pairs as a dictionary."""
        flat = self(*words)
        return dict(zip(flat[::2], flat[1::2]))


class Server:
    """A redis-server in a folder of its own; `with` ends it."""

    def __init__(self, *options, port=None, login=()):
        self.folder = tempfile.mkdtemp(prefix="svmstream-test-redis-")
        self.options, self.port, self.login = options, port or free_port(), login
        self.clients = []
        self.start()

    def start(self, *more):
        words = ["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--dir", self.folder, "--save", ""] + list(self.options + more)
        self.process = subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = deadline()
        while True:
            try:
                self.call = self.client()
                if self.call("PING") == "PONG":
                    return
            except (OSError, Refused):
                if time.monotonic() > end or self.process.poll() is not None:
                    raise Timeout("redis-server does not start")
                select.select([], [], [], 0.01)

    def client(self, *login):
        c = Client(self.port, *(login or self.login))
        self.clients.append(c)
        return c

    def kill(self):
        for c in self.clients:
            c.close()
        self.clients = []
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def url(self):
        return "redis://127.0.0.1:%d" % self.port


class Cluster:
    """Primaries with equal parts of the slots, each with the same number of replicas; `with` ends them."""

    def __init__(self, primaries=3, replicas=0, *options):
        self.nodes = []
        try:
            for _ in range(primaries * (1 + replicas)):
                self.nodes.append(self.node(options))
            self.join(primaries)
        except Exception:
            self.__exit__()
            raise

    @staticmethod
    def node(options):
        """A node's second port is 10,000 above its first."""
        for _ in range(100):
            port = free_port()
            if port < 55000:
                return Server("--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--repl-diskless-sync-delay", "0", *options, port=port)
        raise Timeout("no free port below 55,000")

    def join(self, primaries):
        first = self.nodes[0]
        for n in self.nodes[1:]:
            n.call("CLUSTER", "MEET", "127.0.0.1", first.port)
        step = 16384 // primaries
        for i, n in enumerate(self.nodes[:primaries]):
            n.call("CLUSTER", "ADDSLOTSRANGE", i * step, 16383 if i == primaries - 1 else (i + 1) * step - 1)
        until(lambda: all(self.info(n)["cluster_known_nodes"] == str(len(self.nodes)) for n in self.nodes), "the nodes do not meet")
        for i, n in enumerate(self.nodes[primaries:]):
            of = self.nodes[i % primaries].call("CLUSTER", "MYID").decode()
            until(lambda: self.replicates(n, of), "no replica")
        until(lambda: all(self.info(n)["cluster_state"] == "ok" for n in self.nodes), "the cluster is not complete")

    @staticmethod
    def replicates(node, of):
        try:
            return node.call("CLUSTER", "REPLICATE", of)
        except Refused:
            return False

    @staticmethod
    def info(node):
        return dict(line.split(":", 1) for line in node.call("CLUSTER", "INFO").decode().split())

    def owner(self, name):
        """The node that has the slot of a key."""
        for n in self.nodes:
            if n.process.poll() is None:
                slot = n.call("CLUSTER", "KEYSLOT", name)
                for first, last, primary, *_ in n.call("CLUSTER", "SLOTS"):
                    if first <= slot <= last:
                        return next(m for m in self.nodes if m.port == primary[1])
        return None

    def __call__(self, *words):
        """A command at the node that has its key, which is the second word."""
        return self.owner(words[1]).call(*words)

    def table(self, *words):
        flat = self(*words)
        return dict(zip(flat[::2], flat[1::2]))

    @property
    def url(self):
        return self.nodes[0].url

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for n in self.nodes:
            n.__exit__()


def run(server, command, *words, input=None, environment=None):
    """`svmstream-redis COMMAND`; returns (exit code, stdout as bytes, stderr)."""
    url = server if isinstance(server, str) else server.url
    done = subprocess.run([ADAPTER, command, "--redis", url] + [str(w) for w in words], input=input, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=120, env=dict(os.environ, **environment) if environment else None,
                          **({} if input is not None else {"stdin": subprocess.DEVNULL}))
    return done.returncode, done.stdout, done.stderr.decode()


class Worker:
    """A worker whose log is read; `with` ends it."""

    def __init__(self, server, *words, settings=(), environment=None):
        url = server if isinstance(server, str) else server.url
        self.process = subprocess.Popen([ADAPTER, "run", "--redis", url] + [str(w) for w in words] + ["--"] + [str(w) for w in settings],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        env=dict(os.environ, **environment) if environment else None)
        self.buffer = b""

    def more(self, wait):
        ready, _, _ = select.select([self.process.stderr], [], [], max(0, wait))
        chunk = os.read(self.process.stderr.fileno(), 65536) if ready else b""
        self.buffer += chunk
        return bool(chunk) or not ready

    @property
    def log(self):
        return self.buffer.decode(errors="replace")

    def until(self, pattern, seconds=None):
        """Waits for this in its log."""
        end = deadline(seconds)
        while not re.search(pattern, self.log):
            if time.monotonic() > end or not self.more(end - time.monotonic()):
                raise Timeout("%r is not in the log: %s" % (pattern, self.log[-3000:]))

    def end(self, how=signal.SIGTERM):
        """(exit code, log)"""
        if how:
            self.process.send_signal(how)
        end = deadline()
        while self.more(end - time.monotonic()) and time.monotonic() < end:
            pass
        return self.process.wait(20), self.log

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.kill()
        while kind and self.more(1) and len(self.buffer) < 1 << 20 and select.select([self.process.stderr], [], [], 0)[0]:
            pass
        for line in self.log.splitlines()[-25:] if kind else ():
            print("# " + line)
        self.process.stderr.close()


def until(condition, text, seconds=None):
    """Asks until the condition holds; returns what it gave."""
    end = deadline(seconds)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Timeout(text)
        select.select([], [], [], 0.02)


def key(name, partition, what):
    return "{%s:%d}:%s" % (name, partition, what)


def state(call, name, partition):
    """The stored checkpoint: at, next, hash, ... as text."""
    return {k.decode(): v.decode() for k, v in call.table("HGETALL", key(name, partition, "state")).items()}


def events(call, name, partition, kind="score"):
    """Payloads of one kind in :out, in order."""
    found = []
    for _, fields in call("XRANGE", key(name, partition, "out"), "-", "+"):
        topic, payload = fields[1].decode(), fields[3]
        if topic.startswith(kind + "."):
            found.append(msgpack.unpackb(payload, strict_map_key=False))
    return found
