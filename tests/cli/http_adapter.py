"""svmstream-http for tests: started on a free port, asked over real sockets, its events read. Every wait is for a condition and has a
bound."""
import http.client
import json
import os
import re
import select
import socket
import subprocess
import time

from live import PATIENCE, Timeout, deadline

ADAPTER = os.path.join(os.environ.get("SVMSTREAM_BUILD", "build"), "svmstream-http")
JSON, LINES, CSV, PACK = "application/json", "application/x-ndjson", "text/csv", "application/msgpack"


class Adapter:
    """svmstream-http on a free port; `with` ends it."""

    def __init__(self, *streams, flags=(), port=0):
        words = [ADAPTER, "--listen", "127.0.0.1:%d" % port] + list(flags)
        for s in streams:
            words += ["--stream", s if isinstance(s, str) else "ctl=" + s.address["ctl"]]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        text, end = b"", deadline()
        while not re.search(rb"http://[^/ ]*:(\d+)/", text):
            ready, _, _ = select.select([self.process.stderr], [], [], max(0, end - time.monotonic()))
            chunk = os.read(self.process.stderr.fileno(), 65536) if ready else b""
            if not chunk:
                raise Timeout("no URL: %r" % text)
            text += chunk
        self.port = int(re.search(rb"http://[^/ ]*:(\d+)/", text).group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    def ask(self, method, path, body=None, type=None, **headers):
        """(status, type, body) of one request; JSON is parsed."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            if type:
                headers["Content-Type"] = type
            c.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
            r = c.getresponse()
            kind, data = r.getheader("Content-Type", ""), r.read()
            self.headers = {k.lower(): v for k, v in r.getheaders()}
            return r.status, kind, json.loads(data) if "json" in kind and data else data
        finally:
            c.close()

    def get(self, path, **headers):
        return self.ask("GET", path, **headers)

    def post(self, path, body, type=JSON, **headers):
        if not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        return self.ask("POST", path, body, type, **headers)

    def until(self, path, good):
        """Asks until `good` holds for the answer; returns it."""
        end = deadline()
        while time.monotonic() < end:
            answer = self.get(path)
            if good(answer):
                return answer
            select.select([], [], [], 0.02)
        raise Timeout("%s: the last answer: %r" % (path, answer))

    def ready(self):
        self.until("/streams", lambda a: all(s["state"] == "live" and s["samples"] != "none" for s in a[2]["streams"]))
        # A socket for samples that is connected accepts an empty body of rows and a first row alike.
        self.until("/readyz", lambda a: a[0] == 200)
        end = deadline()
        while time.monotonic() < end:
            if self.post("/predict", [])[0] == 200:
                return self
            select.select([], [], [], 0.02)
        raise Timeout("not ready")


class Events:
    """A reader of server-sent events."""

    def __init__(self, adapter, query="", last=None, buffer=0):
        self.socket = socket.socket()
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", adapter.port))
        self.socket.sendall(("GET /events%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s\r\n" % (
            query, adapter.port, "Last-Event-ID: %s\r\n" % last if last else "")).encode())
        self.data = b""
        self.read(b"\r\n\r\n")
        self.read(b"retry: 2000\n\n")

    def read(self, mark):
        while mark not in self.data:
            chunk = self.socket.recv(65536)
            if not chunk:
                raise Timeout("the events ended")
            self.data += chunk
        before, _, self.data = self.data.partition(mark)
        return before

    def next(self):
        """(event, id, data) of the next one; chunk heads are taken out."""
        while True:
            text = re.sub(rb"\r\n[0-9a-fA-F]+\r\n|^[0-9a-fA-F]+\r\n|\r\n$", b"", self.read(b"\n\n"))
            fields = dict(line.split(": ", 1) for line in text.decode().split("\n") if ": " in line and not line.startswith(":"))
            if "data" in fields:
                return fields.get("event"), fields.get("id"), json.loads(fields["data"])

    def close(self):
        self.socket.close()
