"""Recordings of the program and how they are played.

Each folder here with a scene.json is one scene: `scene.json` says what kind it is, its other files are what an earlier build wrote or was given (a state folder,
model files, rows, the bytes of a dialogue), and `expected.json.gz` is what that build made of them. `evaluate` plays a scene with the program
in $SVMSTREAM, through its command line and its sockets alone, and returns the same figures; `tests/cli/test_recorded` compares the two, and
`tests/recorded/record` makes the recordings.

A folder with the number of a release, as 0.1.0, holds what that release kept: states, exported states, models. Every later version must read
it, so nothing overwrites these inputs (their checksums are in SHA256SUMS); only their expected.json.gz may be made again.

Bits depend on the instruction set, so every scene is played with the plain kernels of svmstream, OpenBLAS and libm (`PLAIN`), which every
x86-64 machine has. Texts for people may be improved: of them the numbers, fingerprints and file names are compared, of an error its code.
"""
import functools
import gzip
import hashlib
import json
import math
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import time

PLAIN = {
    "SVMSTREAM_ISA": "generic",
    "OPENBLAS_CORETYPE": "Prescott",
    "OPENBLAS_NUM_THREADS": "1",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4",
    "TZ": "UTC",
}
os.environ.update(PLAIN)

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "cli"))
from live import ANY, PATIENCE, PROGRAM, Run, Timeout, command, deadline  # noqa: E402

import msgpack  # noqa: E402
import zmq  # noqa: E402

# Figures on the way have speed and memory in them, and come from those that the summary has.
LIVE = re.compile(r" +(rows .* memory|\d+ .*M)$")
# What differs from run to run: clocks, ports, loads, and the words of an error.
EXEMPT = {
    "epoch", "run", "uptime", "seconds", "memory_predicted", "rate", "milliseconds", "refit_milliseconds", "checkpoint_milliseconds", "sums_milliseconds",
    "journal_age", "journal_bytes", "journal_records", "journal_undurable", "checkpoint_age", "checkpoints", "latency_p50", "latency_p99", "turn_mean", "turn_max",
    "latency_buckets", "smallest_p", "idle", "disk_free", "disk_size", "addresses", "curve",
    "in", "out", "ctl", "state.dir", "error", "reason", "refit_error", "novelty_error", "connections",
}
# Results that go on from a checkpoint: another version of the program makes the model from its samples again, in other coordinates.
CHECKPOINT = "from a checkpoint: "
# The other kernels fuse operations as the compiler likes.
KERNEL = " kernels: replay"
KERNELS = {"avx2": {"avx2", "fma"}, "avx512": {"avx512f", "avx512dq", "avx512vl"}}
STATS_RECORD = 6
TOLERANCE = 1e-6  # where other libraries round otherwise: solvers end after another number of steps then
LINES = 12  # of a text that is written: these are kept, and the fingerprint of all
HASH = re.compile(r"[0-9a-f]{32}|[0-9a-f]{64}")
TOKEN = re.compile(r"(?<![\w.])(?:(?:checkpoint|journal)-[0-9a-f]+|[0-9a-f]{32}|[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?|nan|NaN|inf)(?!\w)")


# ---- files

def load(path):
    with gzip.open(path, "rb") as f:
        return f.read()


def save(path, content):
    """The same content is the same file: no time in it."""
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as f:
        f.write(content)


def scenes(folder=""):
    """Names of the scenes: NAME of this version, RELEASE/NAME of an earlier one."""
    names = [os.path.join(folder, n) for n in os.listdir(os.path.join(HERE, folder))]
    return sorted(n for n in names if os.path.exists(os.path.join(HERE, n, "scene.json")))


def releases():
    return sorted(n for n in os.listdir(HERE) if re.fullmatch(r"\d+\.\d+\.\d+", n))


def all_scenes():
    return scenes() + [name for release in releases() for name in scenes(release)]


def sums(release):
    """{name: checksum} of the inputs of a release: all that was written or given then."""
    root = os.path.join(HERE, release)
    names = sorted(os.path.relpath(os.path.join(d, f), root) for d, _, files in os.walk(root) for f in files)
    return {n: hashlib.sha256(of_file(os.path.join(root, n))).hexdigest() for n in names if os.path.basename(n) not in ("expected.json.gz", "built_with.json", "SHA256SUMS")}


def recorded_sums(release):
    with open(os.path.join(HERE, release, "SHA256SUMS")) as f:
        return {n: s for s, n in (line.rstrip("\n").split("  ", 1) for line in f)}


def scene(name):
    with open(os.path.join(HERE, name, "scene.json")) as f:
        return json.load(f)


def expected(name):
    return json.loads(load(os.path.join(HERE, name, "expected.json.gz")))


def recorded_with(release=""):
    with open(os.path.join(HERE, release, "built_with.json")) as f:
        return json.load(f)


def built_with():
    """What the bits depend on apart from the program's own source: machine, C library, OpenBLAS; and its version."""
    linked = subprocess.run(["ldd", PROGRAM], stdout=subprocess.PIPE, check=True).stdout.decode()
    found = re.findall(r"(/\S*/(?:libopenblas|libm|libc)\.so\S*)", linked)
    version = command("--version")[1].split()[-1].partition("+")[0]  # of the release: kept states name that
    comment = subprocess.run(["readelf", "-p", ".comment", PROGRAM], stdout=subprocess.PIPE, check=True).stdout.decode()
    return {"machine": os.uname().machine, "libc": os.confstr("CS_GNU_LIBC_VERSION"),
            "openblas": [os.path.basename(os.path.realpath(f)) for f in found if "openblas" in f], "version": version,
            "compiler": sorted(set(re.findall(r"(?:GCC|clang).*", comment)))}


# ---- what is compared

def tokens(text):
    """Lines that say how fast something was are left out."""
    return TOKEN.findall("\n".join(l for l in text.splitlines() if "/s" not in l))


@functools.lru_cache
def mask(exempt):
    return re.compile(r'"(%s)": ?("(?:[^"\\]|\\.)*"|\{(?:[^{}]|\{[^{}]*\})*\}|[^][{},"]+)|"(version)": ?"[^"]*"' % "|".join(map(re.escape, sorted(exempt))))


def masked(text, exempt=frozenset(EXEMPT)):
    """JSON without the values of what is exempt, else as it was printed."""
    return mask(exempt).sub(lambda m: '"%s":null' % (m.group(1) or m.group(3)), text)


def fields(content, exempt=EXEMPT):
    """A msgpack map as [[key, its bytes in hex]] in its own order; null for what is exempt. Anything else as its bytes."""
    unpacker = msgpack.Unpacker(strict_map_key=False)
    unpacker.feed(content)
    try:
        count = unpacker.read_map_header()
    except ValueError:
        return content.hex()
    pairs = []
    for _ in range(count):
        key = unpacker.unpack()
        begin = unpacker.tell()
        unpacker.skip()
        pairs.append([key, None if key in exempt else content[begin:unpacker.tell()].hex()])
    assert unpacker.tell() == len(content), "one map and nothing after it"
    return pairs


def reply_fields(content, exempt=EXEMPT):
    """Of `config` and `model` the map inside is looked at as well."""
    pairs = fields(content, exempt)
    for pair in pairs if isinstance(pairs, list) else []:
        if pair[0] in ("config", "model") and pair[1] and pair[1][:1] in ("8", "d"):
            pair[1] = fields(bytes.fromhex(pair[1]), exempt)
    found = dict((p[0], p[1]) for p in pairs)
    if found.get("version") and "uptime" in found:  # of the program, not of a model
        pairs[[p[0] for p in pairs].index("version")][1] = None
    return pairs


def event_fields(topic, content):
    """Models, scores and alerts to the bit; of an error its code and count."""
    if topic.startswith("stats."):
        return None
    if topic.startswith("error."):
        error = msgpack.unpackb(content, strict_map_key=False)
        return [topic, error["code"], error["count"]]
    return [topic, fields(content)]


def journal_records(folder):
    """Kind and content of each record, as the manual describes the files; but for those of stats, which come with time."""
    found = []
    for name in sorted(os.listdir(folder)):
        if not name.startswith("journal-"):
            continue
        with open(os.path.join(folder, name), "rb") as f:
            objects = msgpack.Unpacker(f, raw=True, strict_map_key=False)
            objects.unpack()  # the header: epoch and secret
            found += [[r[1], r[4].hex() if r[4] else ""] for r in objects if r[1] != STATS_RECORD]
    return found


def close_numbers(a, b):
    return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= TOLERANCE * max(1.0, abs(a), abs(b))


def packed(text):
    """The value of a field's bytes in hex, or None."""
    try:
        value = msgpack.unpackb(bytes.fromhex(text), strict_map_key=False)
    except Exception:  # noqa: BLE001: whatever is wrong, these are no such bytes
        return None
    if isinstance(value, msgpack.ExtType) and value.code == 2:
        value = list(struct.unpack("<%dd" % (len(value.data) // 8), value.data))
    return value


def close(a, b):
    """Equal up to TOLERANCE; fingerprints cannot be held against each other then."""
    if type(a) is not type(b) and not (isinstance(a, (int, float)) and isinstance(b, (int, float))):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(close(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(close(x, y) for x, y in zip(a, b))
    if isinstance(a, bool) or not isinstance(a, (int, float, str)):
        return a == b
    if not isinstance(a, str):
        return close_numbers(float(a), float(b))
    return a == b or (HASH.fullmatch(a) and HASH.fullmatch(b)) or close_text(a, b)


def close_text(a, b):
    """Numbers, bytes of msgpack, or words and numbers in a line."""
    try:
        return close_numbers(float(a), float(b))
    except ValueError:
        pass
    one, other = packed(a), packed(b)
    if one is not None and other is not None:
        return close(one, other)
    words, others = re.split(r"([\s,:{}\[\]]+)", a), re.split(r"([\s,:{}\[\]]+)", b)
    return len(words) > 1 and close(words, others)


def first_difference(a, b, path=""):
    """Where two results part, for people."""
    if isinstance(a, dict) and isinstance(b, dict) and list(a) == list(b):
        pairs = [(k, a[k], b[k]) for k in a]
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        pairs = [(i, x, y) for i, (x, y) in enumerate(zip(a, b))]
    else:
        return "%s: expected %.300r, got %.300r" % (path, a, b)
    for key, x, y in pairs:
        if x != y:
            return first_difference(x, y, "%s/%s" % (path, key))
    return None


# ---- a dialogue: moves are [socket, frames], ["wait", figures of the status that must be reached],
# or ["command", [words, how it prints, rows]]

class Dialogue:
    """A running process, its router or pull client, a control client, and a subscriber to everything. ["stop", frames] asks it to end."""

    def __init__(self, settings):
        self.stopped = False
        self.run = Run(**settings)
        try:
            self.epoch = str(self.run.ctl("status")["epoch"])
            self.input = self.run.socket(zmq.PUSH if self.run.mode == "pull" else zmq.DEALER, "in")
            self.control = self.run.socket(zmq.DEALER, "ctl")
            self.events = self.run.subscribe("model.", "score.", "alert.", "error.")
        except Exception:
            self.run.close()
            raise

    def ask(self, socket, frames):
        socket.send_multipart(frames)
        return socket.recv_multipart()[-1]

    def move(self, to, what):
        if to == "wait":
            self.run.until("at least %r" % what, lambda status: all(status[k] >= v for k, v in what.items()))
            return None
        if to == "in" and self.run.mode == "pull":
            self.input.send_multipart(what)
            return None
        if to == "command":
            return self.command(*what)
        self.stopped = self.stopped or to == "stop"
        return self.ask(self.input if to == "in" else self.control, what)

    def command(self, words, how, rows=None):
        """`svmstream` against this process: @in, @out and @ctl are its addresses, @rows a file of these rows."""
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as f:
            f.write(rows or "")
            f.flush()
            return of_step([dict(self.run.address, rows=f.name)[w[1:]] if w.startswith("@") else w for w in words], how)

    def play(self, moves):
        return [self.move(*m) for m in moves]

    def end(self, count=None):
        """A clean end. Returns its exit code and the events; `count` are expected."""
        code, _ = self.run.end(None if self.stopped else signal.SIGTERM)
        found, end = [], deadline()
        while self.events.poll(50 if count is not None and len(found) >= count else 1000 if count is None else
                               max(0, 1000 * (end - time.monotonic()))):
            topic, content = self.events.recv_multipart()
            fields_ = event_fields(topic.decode(), content)
            if fields_:
                found.append(fields_)
        return code, found

    def close(self):
        self.run.close()


def moves_of(where):
    return msgpack.unpackb(load(os.path.join(where, "moves.msgpack.gz")))


def played(settings, moves, known, prefix=""):
    """Plays the moves to a process with these settings; what came back. `known`: the result expected, if there is one."""
    before = (known or {}).get(prefix + "events")
    d = Dialogue(settings)
    try:
        replies = d.play(moves)
        code, events = d.end(None if before is None else len(before))
    finally:
        d.close()
    return d.epoch, {prefix + "replies": [reply_fields(r) if isinstance(r, bytes) else r for r in replies],
                     prefix + "events": events, prefix + "exit code": code}


# ---- the kinds of scene. Each: (scene, its folder, an empty folder, the expected result or None) -> {text: result}

def evaluate_dialogue(s, where, work, known):
    folder = os.path.join(work, "state")
    settings = dict(s["settings"])
    if s.get("kept"):
        settings["state.dir"] = folder
    epoch, result = played(settings, moves_of(where), known)
    if s.get("kept"):
        result["journal"] = journal_records(folder)
        result["replay"] = [t for t in replayed("--from-start", folder) if t != epoch]
        result["verify"] = command("state", "verify", folder)[0]
    return result


def of_command(*words):
    """Exit code, and the numbers printed."""
    code, out, _ = command(*words)
    return [code] + tokens(out)


def replayed(*words):
    """The last two numbers are the fingerprints of model and state."""
    return of_command("replay", "-q", *words)


def unpack_folder(where, work):
    """The state directory of a scene, unpacked or, where the scene has an exported state, imported."""
    exported = os.path.join(where, "export.gz")
    if os.path.exists(exported):
        code, _, err = command("state", "import", "-q", os.path.join(work, "state"), input=load(exported))
        assert code == 0, "the exported state is refused: %s" % err
        return os.path.join(work, "state")
    with tarfile.open(os.path.join(where, "state.tar.xz")) as t:
        t.extractall(work)
    return os.path.join(work, "state")


def start_with(words, folder, kept):
    """Would a start with these settings be refused, or what would it change?"""
    code = command("config", "check", "--state.dir", folder, *words)[0]
    return [code] if code else [code] + [l for l in of_step(["config", "show", "--state.dir", folder, *words], "settings") if l not in kept]


def damaged_copy(folder, work):
    """With a byte of the newest checkpoint changed."""
    copy = shutil.copytree(folder, os.path.join(work, "damaged"))
    newest = os.path.join(copy, max(n for n in os.listdir(copy) if n.startswith("checkpoint-")))
    with open(newest, "r+b") as f:
        f.seek(os.path.getsize(newest) // 2)
        byte = f.read(1)[0]
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte ^ 0x20]))
    return copy


def continued(s, where, folder, known):
    """A start in the folder, with what comes next."""
    settings = dict(s["again"], **{"state.dir": folder})
    if settings.get("in") != "-":
        _, result = played(settings, moves_of(where), known, CHECKPOINT)
    else:
        words = [w for k, v in settings.items() for w in ("--" + k, str(v))]
        code, out, _ = command("run", "-q", *words, input=load(os.path.join(where, "next.gz")))
        result = {CHECKPOINT + "lines": [code] + out.splitlines()}
    result[CHECKPOINT + "replay after it"] = replayed(folder)
    result[CHECKPOINT + "verify after it"] = command("state", "verify", "-q", folder)[0]
    return result


def shown(folder, imported):
    """What `state show` prints; of an imported state, whose file is of today, the fingerprints."""
    found = of_command("state", "show", folder)
    return found[:1] + [t for t in found[1:] if HASH.fullmatch(t)] if imported else found


def evaluate_state(s, where, work, known):
    folder = unpack_folder(where, work)
    result = {
        "show": shown(folder, os.path.exists(os.path.join(where, "export.gz"))),
        CHECKPOINT + "verify": of_command("state", "verify", "-q", folder),
        CHECKPOINT + "replay": replayed(folder),
        "settings": of_step(["config", "show", "--state.dir", folder], "settings"),
    }
    for words in s["starts"]:
        result["start with " + " ".join(words)] = start_with(words, folder, result["settings"])
    for words in s["from start"]:
        result["replay " + " ".join(words)] = replayed(*words, folder)
    for isa in KERNELS if s["from start"] else []:
        result[isa + KERNEL] = with_kernels(isa, folder)
    if s.get("damaged"):
        copy = damaged_copy(folder, work)
        result[CHECKPOINT + "damaged, replay"] = replayed(copy)
        result[CHECKPOINT + "damaged, verify"] = command("state", "verify", "-q", copy)[0]
    if s.get("again"):
        result.update(continued(s, where, folder, known))
    return result


def with_kernels(isa, folder):
    """The whole journal with the kernels of this instruction set; None where they are not those that were recorded: a machine without them,
    or a sanitized build, whose compiler may join other operations."""
    with open("/proc/cpuinfo") as f:
        flags = set(re.search(r"^flags.*", f.read(), re.M).group().split())
    if not KERNELS[isa] <= flags or os.environ.get("SVMSTREAM_QUICK"):
        return None
    done = subprocess.run([PROGRAM, "replay", "-q", "--from-start", folder], stdout=subprocess.PIPE, env=dict(os.environ, SVMSTREAM_ISA=isa))
    return [done.returncode] + tokens(done.stdout.decode())


def evaluated(path, flags, work):
    """`eval` of a file: its figures, its table without times, and the model it writes."""
    model = os.path.join(work, "eval.model")
    code, out, _ = command("eval", "-q", "--json", "--model-out", model, *flags, path)
    _, table, _ = command("eval", "-q", *flags, path)
    kept = [l for l in table.splitlines() if l.split()[0] not in EXEMPT]
    shown = command("model", "export", "--format", "json", model)[1]
    return {"eval": [code, masked(out)], "eval table": tokens("\n".join(kept)), "eval model": masked(shown)}


def figures_of(line):
    """An alert's line is data; of a refused row it is its number; of the summary the figures."""
    return line if line.startswith("alert: ") else tokens(line)[:1] if line.startswith("svmstream") else tokens(line)


def evaluate_stream(s, where, work, known):
    """Rows through standard input, and through `eval` with its refits."""
    content = load(os.path.join(where, s["file"] + ".gz"))
    code, out, err = command("run", "--in", "-", "--refit", "none", *s["flags"], *s["run"], input=content)
    lines = digest(out.encode()) if s.get("digest") else out.splitlines()
    result = {"lines": [code] + lines, "alerts, refusals and summary": [figures_of(l) for l in err.splitlines() if not LIVE.match(l)]}
    if s["eval"] is not None:
        path = os.path.join(work, s["file"])
        with open(path, "wb") as f:
            f.write(content)
        result.update(evaluated(path, s["flags"] + s["eval"], work))
    return result


def of_file(path):
    with open(path, "rb") as f:
        return f.read()


def digest(content):
    """The first lines of a text, and the fingerprint of all."""
    try:
        lines = content.decode().splitlines()[:LINES]
    except UnicodeDecodeError:
        lines = []
    return lines + [hashlib.sha256(content).hexdigest()]


def settings_of(text):
    """`config show` without its comments."""
    return [l for l in text.splitlines() if l and not l.startswith(("#", "state.dir:"))]


PRINTED = {"numbers": tokens, "text": lambda t: digest(masked(t).encode()), "settings": settings_of, "code": lambda t: []}


def of_step(words, how, given=None):
    """One command: exit code, and what it printed; `given`: its standard input."""
    code, out, _ = command(*words, input=given)
    return [code] + PRINTED[how](out)


def evaluate_files(s, where, work, known):
    """Commands over files, one after another. A word @NAME is a file of the scene or of an earlier command."""
    for name in os.listdir(where):
        if name.endswith(".gz") and name != "expected.json.gz":
            with open(os.path.join(work, name[:-3]), "wb") as f:
                f.write(load(os.path.join(where, name)))
    result = {}
    for number, step in enumerate(s["steps"]):
        name = "%d. %s" % (number + 1, " ".join(step["run"]))
        given = of_file(os.path.join(work, step["in"])) if "in" in step else None
        result[name] = of_step([os.path.join(work, w[1:]) if w.startswith("@") else w for w in step["run"]], step["out"], given)
        for file in step.get("wrote", []) if result[name][0] == 0 else []:
            result[name + ": " + file] = digest(of_file(os.path.join(work, file)))
    return result


KINDS = {"dialogue": evaluate_dialogue, "state": evaluate_state, "stream": evaluate_stream, "files": evaluate_files}


def evaluate(name, work, known=None):
    s = scene(name)
    return KINDS[s["kind"]](s, os.path.join(HERE, name), work, known)
