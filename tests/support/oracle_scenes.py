"""The scenes of tests/oracle: their names, what they are made of, and how the program in $SVMSTREAM plays one."""
import gzip
import json
import os

import recorded
import transcript
import walks
from samples import ask

import msgpack

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
THREADS = (1, 2, 3)
LATE = 2e9  # arrival of what was recorded: after all time stamps

# name: (file, rows, words)
PRESSES = "presses.csv.gz"
EVALS = {
    "elec2": ("elec2.csv.gz", 4000, []),
    "elec2-alsvm": ("elec2.csv.gz", 4000, ["--method", "alsvm", "--refit", "none"]),
    "elec2-key": ("elec2.csv.gz", 3000, ["--key", "day"]),
    "weather": ("weather.csv.gz", 3000, ["--novelty", "none"]),
    "weather-json": ("weather.csv.gz", 2000, ["--method", "falsvm", "--refit", "none", "--json"]),
    "rialto": ("rialto.csv.gz", 1500, ["--method", "alsvm", "--refit", "none", "--json"]),
    "occupancy": ("occupancy.csv.gz", 4000, ["--method", "none"]),
    "occupancy-alerts": ("occupancy.csv.gz", 4000, ["--method", "none", "--alerts", "--alert.budget", "20/day"]),
    "skab": ("skab_valve1-1.csv.gz", 1200, ["--alerts", "--alert.budget", "50/hour", "--ignore", "is_anomaly"]),
    "nab": ("nab_nyc_taxi.csv.gz", 4000, ["--alerts", "--json", "--novelty.lags", "8", "--ignore", "is_anomaly"]),
    "presses": (PRESSES, 6000, ["--key", "machine", "--label", "status"]),
    "presses-json": (PRESSES, 6000, ["--key", "machine", "--label", "status", "--json", "--keys.memory", "2", "--key.prior", "0"]),
    "presses-alerts": (PRESSES, 6000, ["--key", "machine", "--ignore", "status", "--method", "none", "--alerts", "--alert.budget", "100/day"]),
    "presses-auto": (PRESSES, 3000, ["--key", "machine", "--label", "status", "--method", "auto"]),
}
# Standard input, twice with one state folder: (file, rows, words)
TEXTS = {
    "presses": (PRESSES, 4000, ["--key", "machine", "--label", "status", "--alert.budget", "200/day", "--keys.memory", "3"]),
    "presses-none": (PRESSES, 4000, ["--key", "machine", "--ignore", "status", "--method", "none", "--context", "material,shift", "--limits", "temperature:10..60", "--alert.rules", "beyond,stuck,absent,rate",
                                     "--threads", "2"]),
    "presses-auto": (PRESSES, 1500, ["--key", "machine", "--label", "status", "--method", "auto", "--score.members", "--keys.memory", "2", "--calendar", "day,week"]),
    "presses-one": (PRESSES, 3000, ["--ignore", "machine", "--label", "status", "--method", "alsvm", "--refit", "none", "--window", "300", "--novelty.lags", "2"]),
    "presses-number": (PRESSES, 2000, ["--key", "machine", "--label", "temperature", "--task", "regress", "--ignore", "status", "--novelty", "fosvm2"]),
    "elec2": ("elec2.csv.gz", 1500, ["--method", "auto"]),
}
QUICK = {"eval-presses", "eval-presses-alerts", "eval-elec2-alsvm", "eval-skab", "text-presses", "text-presses-one", "recorded-dialogue-words", "recorded-dialogue-kept", "recorded-state-classes",
         "recorded-stream-named", "recorded-files-novelty"}
TURNS = {True: 60, False: 110}


# ---- names

def data_file(name):
    for folder in (os.environ.get("DATA", ""), os.path.join(ROOT, "data"), os.path.join(ROOT, "examples")):
        if os.path.exists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    return None


def names(quick, seeds):
    """Of all scenes."""
    found = ["eval-" + name for name in EVALS if data_file(EVALS[name][0])] + ["text-" + name for name in TEXTS if data_file(TEXTS[name][0])]
    found += ["recorded-" + name for name in recorded.scenes()]
    found = [name for name in found if not quick or name in QUICK]
    for seed in seeds:
        found.append("walk-%d" % seed)
        found += ["keys-%d-%d" % (threads, seed) for threads in THREADS]
    return found


# ---- moves

def walk_of(name, quick):
    kind, *numbers = name.split("-")
    w = walks.Walk(int(numbers[-1]), int(numbers[0]) if kind == "keys" else None, TURNS[quick], quick)
    return w.settings, w.moves


def dialogue_of(name):
    """What was recorded, and a look at the folder."""
    s = recorded.scene(name)
    settings = dict(s["settings"], **({"state.dir": "state"} if s.get("kept") else {}))
    moves = [["at", LATE]] + [list(m) for m in recorded.moves_of(os.path.join(recorded.HERE, name))]
    moves = [["end", "stop"] if m[0] == "stop" else m for m in moves]
    if moves[-1][0] != "end":
        moves.append(["end", "term"])
    if s.get("kept"):
        moves += [["folder", "state", "verify", "state"], ["folder", "replay", "--from-start", "state"], ["folder", "replay", "state"]]
    return settings, moves


def changed_settings(name):
    """What the state that was recorded has other than by default, and what goes with acknowledgements."""
    def table(lines):
        pairs = [line.split(": ", 1) for line in lines if ": " in line]
        return {key: json.loads(value) if value[:1] == '"' else value for key, value in pairs}
    usual = table(recorded.of_step(["config", "default"], "settings")[1:])
    kept = {key: value for key, value in table(recorded.expected(name)["settings"][1:]).items() if usual.get(key) != value}
    return dict(kept, **{"in.mode": "router", "delivery": "at-least-once", "state.dir": "state", "checkpoint.seconds": 0, "journal.keep": "all", "publish.seconds": 0},
                **({} if kept.get("refit", "none") == "none" else {"refit.every": 1000000}))


def state_of(name, folder):
    """What the journal of a state that was recorded has, sent again from the beginning. Where a refit took effect one is waited for."""
    settings, moves, lives, refits = changed_settings(name), [["at", LATE]], 0, 0
    kept = recorded.unpack_folder(os.path.join(recorded.HERE, name), os.path.join(folder))
    os.rename(kept, os.path.join(folder, "recorded"))
    how = "kill"
    for kind, content in recorded.journal_records(os.path.join(folder, "recorded")):
        content = bytes.fromhex(content)
        if kind in (1, 2):
            moves.append(["in", [content]])
        elif kind == 3 and not content.endswith(b"refit"):
            moves.append(["ctl", [content]])
        elif kind == 4:
            refits += 1
            moves += [ask("refit"), ["wait", {"refits": refits}]]
        elif kind == 7:
            moves += [["again", how, {}]] if lives else []
            lives, how = lives + 1, "kill"
        elif kind == 8:
            how = "term"
    if os.path.exists(os.path.join(recorded.HERE, name, "moves.msgpack.gz")):
        moves += [["again", how, {}]] + [list(m) for m in recorded.moves_of(os.path.join(recorded.HERE, name))]
    moves += [ask("status"), ask("model"), ["end", "term"], ["folder", "state", "verify", "state"], ["folder", "replay", "--from-start", "state"], ["folder", "replay", "state"]]
    return settings, moves


def moves_of(name, quick, folder):
    """(settings, moves) of a scene that is a dialogue, or None."""
    if name.startswith(("walk-", "keys-")):
        return walk_of(name, quick)
    if name.startswith("recorded-dialogue-"):
        return dialogue_of(name[9:])
    if name.startswith("recorded-state-"):
        return state_of(name[9:], folder)
    return None


# ---- playing

def head_of(file, rows):
    with gzip.open(data_file(file), "rt") as whole:
        return [line for _, line in zip(range(rows + 1), whole)]


def play_eval(name):
    file, rows, words = EVALS[name]
    with open("rows.csv", "w") as head:
        head.writelines(head_of(file, rows))
    return [["eval", transcript.run_command("eval", *words, "rows.csv")]]


def play_text(name):
    """Two runs that go on with each other, and a replay. A row that is wrong in each."""
    file, rows, words = TEXTS[name]
    header, *lines = head_of(file, rows)
    words = ["--in", "-", "--state.dir", "state", "--journal.keep", "all", "--checkpoint.seconds", "0", *words]
    parts = []
    for i, half in enumerate((lines[:rows // 2], lines[rows // 2:])):
        half.insert(len(half) // 3, "1,2\n")
        parts.append(["run %d" % (i + 1), transcript.run_command("run", *words, input=(header + "".join(half)).encode())])
    for command in (["state", "verify"], ["replay", "--from-start"], ["replay", "--alerts", "--json"], ["replay", "--alerts"]):
        parts.append([" ".join(command), transcript.run_command(*command, "state")])
    return parts


def play_stream(name):
    where = os.path.join(recorded.HERE, name)
    s, content = recorded.scene(name), recorded.load(os.path.join(where, recorded.scene(name)["file"] + ".gz"))
    parts = [["run", transcript.run_command("run", "--in", "-", "--refit", "none", *s["flags"], *s["run"], input=content)]]
    if s["eval"] is not None:
        recorded_write(s["file"], content)
        for words in (["--json", "--model-out", "out.model"], []):
            parts.append(["eval " + " ".join(words), transcript.run_command("eval", *words, *s["flags"], *s["eval"], s["file"])])
        parts.append(["model", transcript.run_command("model", "export", "--format", "json", "out.model")])
    return parts


def recorded_write(name, content):
    with open(name, "wb") as f:
        f.write(content)


def play_files(name):
    """Commands over files, and what they wrote."""
    where, parts = os.path.join(recorded.HERE, name), []
    for file in os.listdir(where):
        if file.endswith(".gz") and file != "expected.json.gz":
            recorded_write(file[:-3], recorded.load(os.path.join(where, file)))
    for step in recorded.scene(name)["steps"]:
        words = [w[1:] if w.startswith("@") else w for w in step["run"]]
        parts.append([" ".join(words), transcript.run_command(*words)])
        for file in step.get("wrote", []):
            parts.append([" ".join(words) + ": " + file, recorded.of_file(file) if os.path.exists(file) else None])
    return parts


def play(name, quick, clock, folder):
    """A transcript. In that folder, which is the current one."""
    found = moves_of(name, quick, folder)
    if found:
        return transcript.transcript_of(*found, clock)
    kind = {"eval-": play_eval, "text-": play_text, "recorded-stream-": play_stream, "recorded-files-": play_files}
    begin, how = next((begin, how) for begin, how in kind.items() if name.startswith(begin))
    parts = how(name[len("recorded-"):] if begin.startswith("recorded-") else name[len(begin):])
    return [[i, what, value] for i, (what, value) in enumerate(parts)]


def described(name, quick, number, folder):
    """The move of a dialogue, for people."""
    found = moves_of(name, quick, folder)
    if not found or number < 0:
        return ""
    move = found[1][number]
    if move[0] in ("in", "ctl") and not move[1][0].startswith((b"{", b"[")):
        try:
            return "%s %.500r" % (move[0], msgpack.unpackb(move[1][0], strict_map_key=False))
        except Exception:  # noqa: BLE001: not msgpack by intent
            pass
    return "%.500r" % (move,)
