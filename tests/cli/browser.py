"""A headless Chromium for tests: opens pages, evaluates scripts in them, clicks, takes pictures, and records what its console and
its security policy complain about. It speaks the DevTools protocol over two pipes (JSON that ends with a zero byte), so it needs
no library and no port. Every wait is for a condition and has a bound."""
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

PATIENCE = 20 * (5 if os.environ.get("SVMSTREAM_QUICK") else 1)


def find():
    """The browser, or None."""
    for name in ("chromium", "chromium-browser"):
        path = shutil.which(name)
        if path:
            return path
    return None


class Browser:
    """One Chromium with one page; `with` ends it and removes its profile."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="svmstream-browser-")
        to_read, self.out = os.pipe()
        self.back, to_write = os.pipe()
        words = [find(), "--headless=new", "--no-sandbox", "--remote-debugging-pipe", "--user-data-dir=" + self.folder, "--disable-gpu",
                 "--no-first-run", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
                 "--disable-extensions", "--hide-scrollbars", "--mute-audio", "--force-color-profile=srgb", "about:blank"]

        def pipes():  # the protocol's descriptors are 3 and 4
            ends = os.dup(to_read), os.dup(to_write)
            first, second = os.fdopen(ends[0], "rb", 0), os.fdopen(ends[1], "wb", 0)
            spare = os.dup2(first.fileno(), 60), os.dup2(second.fileno(), 61)
            os.dup2(spare[0], 3)
            os.dup2(spare[1], 4)

        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        preexec_fn=pipes, close_fds=False, start_new_session=True)
        os.close(to_read)
        os.close(to_write)
        os.set_inheritable(self.out, False)
        os.set_inheritable(self.back, False)
        self.number, self.buffer, self.events, self.session = 0, b"", [], None
        self.complaints = []  # of the console: errors, warnings, exceptions, refused by the policy
        targets = self.call("Target.getTargets")["targetInfos"]
        page = [t for t in targets if t["type"] == "page"][0]["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "HeapProfiler"):
            self.call(domain + ".enable")
        self.call("Performance.enable", timeDomain="threadTicks")  # times of the CPU, which other programs do not lengthen

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the browser with the processes that it began: they share its session."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.out)
        os.close(self.back)
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- the protocol

    def _message(self, end):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.back], [], [], max(0, end - time.monotonic()))
            chunk = os.read(self.back, 1 << 20) if ready else b""
            if not chunk:
                raise TimeoutError("no answer from the browser")
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(line)

    def _event(self, message):
        method, p = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            d = p["exceptionDetails"]
            self.complaints.append("exception: %s %s" % (d.get("text"), d.get("exception", {}).get("description", "")))
        elif method == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning", "assert"):
            self.complaints.append("console: " + " ".join(str(a.get("value", a.get("description"))) for a in p["args"]))
        elif method == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
            self.complaints.append("log: %s %s" % (p["entry"]["text"], p["entry"].get("url", "")))
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append("dialog: " + p["message"])
            self.events.append(message)
        elif method and method.startswith("Page."):
            self.events.append(message)
            del self.events[:-200]

    def call(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        end = time.monotonic() + PATIENCE
        while True:
            message = self._message(end)
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError("%s: %s" % (method, message["error"]))
                return message["result"]
            self._event(message)

    # ---- what a test does

    def open(self, url):
        """Opens `url` and waits until it is loaded."""
        self.events = []
        answer = self.call("Page.navigate", url=url)
        if answer.get("errorText"):
            raise RuntimeError(answer["errorText"])
        end = time.monotonic() + PATIENCE
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            self._event(self._message(end))

    def run(self, script):
        """The value of an expression (a promise is awaited), by JSON."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True)
        if "exceptionDetails" in answer:
            d = answer["exceptionDetails"]
            raise RuntimeError("%s: %s" % (d.get("text"), d.get("exception", {}).get("description", "")))
        return answer["result"].get("value")

    def until(self, script, text=None):
        """Waits until an expression is true, and returns its value."""
        end = time.monotonic() + PATIENCE
        value = None
        while time.monotonic() < end:
            value = self.run(script)
            if value:
                return value
            select.select([], [], [], 0.03)
        raise TimeoutError("%s: never" % (text or script))

    def click(self, script):
        """Clicks with the mouse into the middle of the element that an expression returns."""
        self.run("(%s).scrollIntoView({block: 'center', behavior: 'instant'})" % script)
        box = self.run("(() => { const r = (%s).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()" % script)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def drag(self, script, begin, end):
        """Drags over an element, from one share of its width to another."""
        self.run("(%s).scrollIntoView({block: 'center', behavior: 'instant'})" % script)
        x, y, width, height = self.run("(() => { const r = (%s).getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })()" % script)
        points = [x + width * (begin + (end - begin) * i / 4) for i in range(5)]
        middle = y + height / 2
        self.call("Input.dispatchMouseEvent", type="mousePressed", x=points[0], y=middle, button="left", buttons=1, clickCount=1)
        for p in points[1:]:
            self.call("Input.dispatchMouseEvent", type="mouseMoved", x=p, y=middle, button="left", buttons=1)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", x=points[-1], y=middle, button="left", clickCount=1)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def key(self, name, code=0):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code,
                      **({"text": name} if len(name) == 1 and kind == "keyDown" else {}))

    def size(self, width, height, mobile=False, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=mobile)

    def dark(self, yes):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if yes else "light"}])

    def picture(self, path, whole=False):
        """A screenshot as PNG, of what is visible or of the whole page."""
        more = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            more = {"captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}}
        data = self.call("Page.captureScreenshot", format="png", **more)["data"]
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))

    def worked(self):
        """Seconds of CPU that the page's own thread has taken."""
        return next(m["value"] for m in self.call("Performance.getMetrics")["metrics"] if m["name"] == "TaskDuration")

    def heap(self):
        """Bytes of the page's objects after a collection."""
        for _ in range(2):
            self.call("HeapProfiler.collectGarbage")
        return self.call("Runtime.getHeapUsage")["usedSize"]
