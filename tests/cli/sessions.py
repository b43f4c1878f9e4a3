"""Runs the console sessions of a page: what is shown is what the program prints.

A block ```console holds commands after `$ `, which go on in the next line after a `\\` at the end, and what they print. In the output `...` stands for anything in a line, and for any lines where it
is alone. A command that ends in & runs in the background; the lines below it are waited for. A block after `<!-- file: NAME -->` is written to
that file first. All blocks of a page are one shell in one new directory, in which `examples` and `build` are those of the project. The default
addresses are replaced by free ports on the way in and back on the way out, so that two pages can run at the same time.

After `<!-- numbers vary -->` a block shows what a run has really printed: numbers in it stand for any numbers, and the width of a gap in a line
does not count. Everything else is compared.
"""
import os
import random
import re
import select
import signal
import socket
import subprocess
import tempfile
import time

from live import PROGRAM, SLOW, check

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = os.path.join(ROOT, "src", "manual")
BUILD = os.path.abspath(os.environ.get("SVMSTREAM_BUILD", os.path.dirname(PROGRAM)))
PORTS = ("5555", "5556", "5557", "1883", "9464")
PATIENCE = 60 * SLOW
END = "session-command-ended"
REPEATED = ("cat ", "tail ", "svmstream ctl status")  # their output grows: asked again until it is as shown

# Addresses from a settings file, except where a command has a file of its own or reads standard input.
WRAPPER = """#!/bin/bash
case "$1" in help*|config|--*|'') exec {program} "$@" ;; esac
previous=
for word; do
    case "$previous $word" in *--config*|*" -f"|"--in -"|*" --in=-") exec {program} "$@" ;; esac
    previous=$word
done
exec {program} "$1" --config {settings} "${{@:2}}"
"""
MQTT = """#!/bin/bash
exec {program}-mqtt --in tcp://127.0.0.1:{0} --out tcp://127.0.0.1:{1} "$@"
"""
HTTP = """#!/bin/bash
case "$1" in token|--help|--version) exec {program}-http "$@" ;; esac
case " $* " in *" --stream "*) exec {program}-http --listen 127.0.0.1:{4} "$@" ;; esac
exec {program}-http --listen 127.0.0.1:{4} --stream ctl=tcp://127.0.0.1:{2} "$@"
"""


def text_of(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def blocks(text):
    """(kind, name of the file or None, whether numbers vary, content) of each fenced block."""
    found = re.findall(r"(?:<!-- (?:file: (\S+)|(numbers vary)) -->\n)?^```(\w*)\n(.*?)^```$", text, re.S | re.M)
    return [(kind, name or None, bool(vary), content) for name, vary, kind, content in found]


def commands(content):
    """(command, expected output) of a console block."""
    result = []
    for line in content.splitlines():
        if line.startswith("$ "):
            result.append([line[2:], ""])
        elif result[-1][0].endswith("\\") and not result[-1][1]:
            result[-1][0] = result[-1][0][:-1] + line.lstrip()
        else:
            result[-1][1] += line + "\n"
    return result


NUMBER = r"(?:[0-9a-f]{32}|(?:less than )?[+-]?\d+(?:[.,:]\d+)*(?:e[+-]?\d+|[kMG]\b)?)"  # and hashes


def line_pattern(line, vary):
    if not vary:
        return re.escape(line).replace(re.escape("..."), ".*")
    parts = re.split(r"((?<!\w)%s| +)" % NUMBER, line)  # every second one is a number or a gap
    return "".join(re.escape(p) if i % 2 == 0 else " +" if p.isspace() else NUMBER for i, p in enumerate(parts))


def pattern_of(expected, vary=False):
    return re.compile("".join(r"(?:.*\n)*" if line == "..." else line_pattern(line, vary) + r"\n" for line in expected.splitlines()))


def free_ports(count):
    found = []
    while len(found) < count:
        with socket.socket() as s:
            port = random.randrange(20000, 30000)  # not where the system takes its own from
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
            if str(port) not in found:
                found.append(str(port))
    return found


class Session:
    def __init__(self, folder):
        self.folder = folder
        self.ports = free_ports(len(PORTS))
        self.logs = 0
        programs = os.path.join(folder, ".bin")
        settings = os.path.join(folder, ".addresses")
        os.mkdir(programs)
        with open(settings, "w") as f:
            f.write("".join("%s: tcp://127.0.0.1:%s\n" % a for a in zip(("in", "out", "ctl"), self.ports)))
        for name, text in (("svmstream", WRAPPER), ("svmstream-mqtt", MQTT), ("svmstream-http", HTTP)):
            path = os.path.join(programs, name)
            with open(path, "w") as f:
                f.write(text.format(*self.ports, program=os.path.abspath(PROGRAM), settings=settings))
            os.chmod(path, 0o755)
        os.symlink("/usr/bin/python3", os.path.join(programs, "python3"))
        os.symlink(os.path.join(ROOT, "examples"), os.path.join(folder, "examples"))
        os.symlink(BUILD, os.path.join(folder, "build"))
        path = programs + ":" + os.environ["PATH"] + ":/usr/sbin"
        self.shell = subprocess.Popen(["bash"], cwd=folder, env=dict(os.environ, PATH=path, SVMSTREAM=os.path.abspath(PROGRAM)),
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)

    def close(self):
        os.killpg(self.shell.pid, signal.SIGKILL)
        self.shell.communicate()

    def inward(self, text):
        for shown, real in zip(PORTS, self.ports):
            text = re.sub(r"\b%s\b" % shown, real, text)
        return text

    def outward(self, text):
        for shown, real in zip(PORTS, self.ports):
            text = re.sub(r"\b%s\b" % real, shown, text)
        return text

    def run(self, command):
        """What the command prints, errors too."""
        self.shell.stdin.write(("{ %s\n} </dev/null 2>&1; echo; echo %s\n" % (command, END)).encode())
        self.shell.stdin.flush()
        got, end = b"", time.monotonic() + PATIENCE
        while not got.endswith(("\n%s\n" % END).encode()):
            ready, _, _ = select.select([self.shell.stdout], [], [], max(0, end - time.monotonic()))
            chunk = os.read(self.shell.stdout.fileno(), 65536) if ready else b""
            if not chunk:
                raise TimeoutError("%s: no end within %g s; so far: %r" % (command, PATIENCE, got[-500:]))
            got += chunk
        text = got.decode("utf-8", "replace")[:-len(END) - 2]
        return text if text.endswith("\n") or not text else text + "\n"

    def background(self, command, pattern):
        """Starts it; returns what it printed as soon as that is as the pattern says, or when time is up."""
        self.logs += 1
        log = os.path.join(self.folder, ".log%d" % self.logs)
        own = "" if "2>" in command else " 2>" + log if ">" in command else " >%s 2>&1" % log
        self.run("%s%s &" % (command, own))
        if "svmstream run" in command:
            self.run("learner=$!")
        end = time.monotonic() + PATIENCE
        while True:
            got = self.outward(text_of(log)) if os.path.exists(log) else ""
            if pattern.match(got) or time.monotonic() > end:
                return got
            select.select([], [], [], 0.02)  # between two looks at the condition

    def foreground(self, command, pattern):
        end = time.monotonic() + PATIENCE
        while True:
            got = self.outward(self.run(command))
            if not command.startswith(REPEATED) or pattern.fullmatch(got) or time.monotonic() > end:
                break
            select.select([], [], [], 0.05)
        if "ctl stop" in command or command.startswith("kill"):
            code = self.run("wait $learner 2>/dev/null; echo $?").strip()
            return got if code == "0" or "kill -9" in command else got + "exit code " + code
        return got

    def step(self, command, expected, vary=False):
        inside, pattern = self.inward(command), pattern_of(expected, vary)
        if inside.endswith("&"):
            got = self.background(inside[:-1].strip(), pattern)
            return bool(pattern.match(got)), got
        got = self.foreground(inside, pattern)
        return bool(pattern.fullmatch(got)), got


def run_page(name, text):
    """Runs every console block of a page; one test point a command."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        session = Session(folder)
        try:
            for kind, file, vary, content in blocks(text):
                if file:
                    with open(os.path.join(folder, file), "w", encoding="utf-8") as f:
                        f.write(session.inward(content))
                for command, expected in commands(content) if kind == "console" else []:
                    good, got = session.step(command, expected, vary)
                    check(good, "%s: %s" % (name, command), "expected", *expected.splitlines(), "got", *got.splitlines()[-30:])
        except TimeoutError as e:
            check(False, "%s: %s" % (name, e))
        finally:
            session.close()
    print("# %s: %.1f s" % (name, time.monotonic() - begun))
