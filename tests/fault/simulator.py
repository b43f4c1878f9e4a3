"""What the tests of this folder share: where things are, processes under the simulator, TAP lines."""
import functools
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(os.environ.get("SVMSTREAM_BUILD", os.path.join(HERE, "..", "..", "build")), "fault")
POWERCUT = os.path.join(BUILD, "powercut.so")
QUICK = bool(os.environ.get("SVMSTREAM_QUICK"))
PATIENCE = 120 if QUICK else 30
CUT = 137


@functools.lru_cache(maxsize=None)
def sanitizer_libraries(program):
    """A sanitizer wants to be the first library of a process: so it is named before the simulator."""
    listing = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return re.findall(r"(/\S*/lib(?:asan|tsan)\.so\S*)", listing)


def judged(code, complaints):
    """A cut leaves a sanitizer no time to make its complaints the exit code."""
    return 66 if code == CUT and re.search("(WARNING|ERROR): [A-Z][A-Za-z]*Sanitizer", complaints) else code


def clean_environment():
    return {k: v for k, v in os.environ.items() if not k.startswith("FAULT_") and k != "LD_PRELOAD"}


def run(words, folder=None, **fault):
    """Runs a program; with a folder under the simulator: FAULT_<NAME> for each keyword. Returns (code, output, complaints)."""
    env = clean_environment()
    if folder is not None:
        env.update({"FAULT_" + k.upper(): str(v) for k, v in fault.items()})
        env.update(FAULT_DIR=folder, LD_PRELOAD=" ".join(sanitizer_libraries(words[0]) + [POWERCUT]))
    done = subprocess.run([str(w) for w in words], env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)
    return judged(done.returncode, done.stderr.decode("utf-8", "replace")), done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


class Log:
    """What the simulator says at the end of a process."""

    def __init__(self, path):
        self.path = path

    def take(self):
        """{"what": "cut", "call": "write", "calls": 17, ...} of the last process; empty when it ended without a word."""
        try:
            with open(self.path) as f:
                line = f.read().split()
            os.unlink(self.path)
        except FileNotFoundError:
            return {}
        pairs = dict(w.split("=") for w in line[1:] if "=" in w)
        return dict({k: int(v) if v.isdigit() else v for k, v in pairs.items()}, what=line[0])


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def ok(self, good, text, *remarks):
        self.count += 1
        self.failed += not good
        print("%sok %d - %s" % ("" if good else "not ", self.count, text))
        for r in remarks:
            print("#   %s" % r)
        sys.stdout.flush()

    def end(self):
        print("1..%d" % self.count)
        sys.exit(1 if self.failed else 0)


def skip_all(why):
    print("ok 1 - fault simulation # SKIP %s" % why)
    print("1..1")
    sys.exit(0)


class Span:
    """Which cycle wrote which records: [(first record, cycle), ...]."""

    def __init__(self, spans=()):
        self.spans = list(spans)

    def up_to(self, count):
        return [s for s in self.spans if s[0] < count]

    def begin(self, first, cycle):
        self.spans = self.up_to(first) + [(first, cycle)]


class Folder:
    """A folder that several writers, one after another, work on; knows what must be in it.

    `found` gathers what went wrong: lost (acknowledged records that are gone), garbage (something was accepted that was
    not written there), refused (the store declares it damaged), torn (a checkpoint that cannot be read), crash."""
    KINDS = ("lost", "garbage", "refused", "torn", "crash")

    def __init__(self, parent, name, seed, programs=BUILD, **options):
        self.path = os.path.join(parent, "state-%s" % name)
        self.log = Log(os.path.join(parent, "log-%s" % name))
        self.seed, self.programs, self.options = seed, programs, options
        self.cycle = self.acked = self.recovered = 0
        self.spans = Span()
        self.found, self.remarks = dict.fromkeys(self.KINDS, 0), []

    def fault(self, kind, text, count=1):
        self.found[kind] += count
        self.remarks.append("seed %d cycle %d: %s: %s" % (self.seed, self.cycle, kind, text))

    def good(self):
        return not any(self.found.values())

    def write(self, allowed=(0, CUT), **fault):
        """One more process (`started`: it got as far as its first record). Returns (its exit code, what the simulator says, complaints)."""
        self.cycle += 1
        words = [os.path.join(self.programs, "store_writer"), self.path, "seed=%d" % self.seed, "cycle=%d" % self.cycle]
        words += ["%s=%s" % o for o in self.options.items()]
        code, out, err = run(words, self.path, log=self.log.path, **fault)
        self.started = False
        for line in out.splitlines():
            what, number = line.split()
            if what == "start":
                self.started = True
                self.recovered_as(int(number), " by the next writer")
                self.spans.begin(int(number), self.cycle)
            elif int(number) > self.acked:
                self.acked = int(number)
        if code not in allowed:
            kind = {1: "garbage", 2: "refused"}.get(code, "crash")
            self.fault(kind, "the writer ended with %d: %s" % (code, err.strip()[-300:]))
        return code, self.log.take(), err

    def recovered_as(self, count, who):
        self.recovered = count
        if count < self.acked:
            self.fault("lost", "%d acknowledged, %d recovered%s" % (self.acked, count, who), self.acked - count)
            self.acked = count  # each loss is counted once

    def check(self):
        """What the store finds, held against what was written."""
        code, out, err = run([os.path.join(self.programs, "store_check"), self.path, self.seed])
        if code == 3 and out.startswith("no folder"):
            self.recovered_as(0, ", for there is no folder")
            return
        if code != 0:
            self.fault({1: "garbage", 2: "refused"}.get(code, "crash"), "%d: %s%s" % (code, out.strip(), err.strip()[-300:]))
            return
        words = out.split()
        count, damaged = int(words[1]), int(words[3])
        spans = [tuple(int(n) for n in w.split(":")) for w in words[7:]]
        self.recovered_as(count, "")
        if damaged:
            self.fault("torn", out.strip())
        if spans != self.spans.up_to(count):
            self.fault("garbage", "spans %s instead of %s" % (spans, self.spans.up_to(count)))
