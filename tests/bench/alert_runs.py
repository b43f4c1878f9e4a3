"""What all parts of `alerts` share: rows written as a CSV, the engine of `run` on it, and what its alert events say."""
import collections
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

import results

HOUR, DAY = 3600, 86400
FLAGS = os.environ.get("FLAGS", "").split()
SHOW = os.environ.get("SHOW", "no") == "yes"
DATA = os.environ.get("SVMSTREAM_DATA", "data")
PROGRAM = sys.argv[1] if len(sys.argv) > 1 else ""

Event = collections.namedtuple("Event", "row time state kind alert text raw")


def seeds(default):
    """Seeds from FIRST (1) on: SEEDS of them, or what the part takes by itself."""
    first = int(os.environ.get("FIRST") or 1)
    return range(first, first + int(os.environ.get("SEEDS") or results.pick(1, max(1, default // 2), default)))


def value(line, key):
    """The number of a key in a line of JSON; None without it. Faster than reading all of it."""
    at = line.find(key)
    if at < 0:
        return None
    at += len(key)
    end = min(e for e in (line.find(",", at), line.find("}", at)) if e >= 0)
    return None if line[at:end] == "null" else float(line[at:end])


def play_scores(path, flags=(), names=(), rows=0):
    """Alert events, and of each name in the score events a value for each row; NaN: it has none."""
    command = [PROGRAM, path, "scores" if names else "alerts"] + list(flags) + FLAGS
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    events, scores = [], {name: np.full(rows, np.nan) for name in names}
    for line in out.splitlines():
        what, row, text = line.split(" ", 2)
        if what == "A":
            e = json.loads(text)
            events.append(Event(int(row), e["ts"], e["state"], e.get("kind", "novelty"), e.get("alert", 0), e.get("text", ""), e))
            continue
        for name in names:
            found = value(text, '"%s":' % name)
            scores[name][int(row) - 1] = np.nan if found is None else found
    return events, scores


def play(path, flags=()):
    return play_scores(path, flags)[0]


def write(path, columns, digits=3):
    """Columns by name as a CSV: numbers with `digits` digits (a dict: by name), NaN an empty cell, integers and strings as they are."""
    cells = []
    for name, x in columns.items():
        x = np.asarray(x)
        if x.dtype.kind != "f":
            cells.append([str(v) for v in x.tolist()])
            continue
        form = "%%.%df" % (digits.get(name, 3) if isinstance(digits, dict) else digits)
        cells.append([form % v if v == v else "" for v in x.tolist()])
    with open(path, "w") as f:
        f.write(",".join(columns) + "\n" + "".join(",".join(row) + "\n" for row in zip(*cells)))


def play_columns(columns, flags=(), digits=3):
    """Alert events of columns by name."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.csv")
        write(path, columns, digits)
        return play(path, flags)


def merged(keys, digits=3, name="key"):
    """Columns of a fleet from those of each key, in the order of their times; all keys have the same columns and `ts`."""
    order = np.argsort(np.concatenate([x["ts"] for x in keys.values()]), kind="stable")
    fleet = {name: np.repeat(np.array(list(keys)), [len(x["ts"]) for x in keys.values()])[order]}
    for column in next(iter(keys.values())):
        fleet[column] = np.concatenate([x[column] for x in keys.values()])[order]
    return fleet


def opened(events):
    return [e for e in events if e.state == "open"]


def spoke(events):
    """What a person hears: an alert opens, or is worse."""
    return [e for e in events if e.state in ("open", "update")]


def about(event, key):
    """Whether an event of a fleet concerns a key."""
    return event.raw.get("key") == key or key in event.raw.get("keys", [])


def first_in(events, begin, end):
    """Seconds from the begin of a fault to the first event in it; one of less than an hour has an hour more. None: none came."""
    grace = HOUR if end - begin < HOUR else 0
    times = [e.time for e in spoke(events) if begin <= e.time <= end + grace]
    return min(times) - begin if times else None


def span(seconds):
    return "-" if seconds is None else "%.0f s" % seconds if seconds < 120 else "%.0f min" % (seconds / 60) if seconds < 7200 \
        else "%.1f h" % (seconds / HOUR)


def by_kind(events):
    """Opened alerts by kind, and by the detector or rule that opened them, as text."""
    names = collections.Counter(e.kind + " " + str(e.raw.get("detector") or e.raw.get("rule") or "") for e in opened(events))
    return ", ".join("%s %d" % (name.strip(), count) for name, count in names.most_common())
