"""Part `lines`: alert lines of the simulators beside the raw readings that they speak of, for a person to check.

Forty lines, opened or updated, taken in turn from the detectors and rules that speak, on compressors, the other machines (each with
a fault of each kind, and without one) and machines on their first day: the last of each run and detector. Below a line, of each sensor
that it names with a number: the raw readings from `since` to the line (mean, least, largest, last) and in the day before. A number
"for 30 min" has the readings of that time, if it is longer.

Said: the numbers that directly follow a sensor's name. One that is outside the readings of that time by more than its last digit was
never measured; differences from what was expected do not count as readings. One that is inside the range in brackets behind it, or at its
border, contradicts itself. None of all lines of these runs may be so.
"""
import re

import numpy as np

import alert_runs
import compressors
import day_one
import machines
import results as table_rows
from alert_runs import DAY, SHOW, spoke

LINES = 40
DIFFERENCE = re.compile(r" (above|below|higher|lower|more|less|over|under) (than )?(expected|usual|normal|the forecast)")
LASTED = re.compile(r"(?: on average)? for ((?:[\d,]+ (?:d|h|min|s|rows?)\b ?)+)")
RANGE = re.compile(r"[^;(]*\((?:usually |normally )?(-?[\d.,]*\d) to (-?[\d.,]*\d)(?: expected)?\)")
UNITS = {"d": DAY, "h": 3600, "min": 60, "s": 1}


def sources():
    """Runs as (what, number, fault), the kinds in turn."""
    each = [[("compressor", seed, fault) for seed, fault in zip([1, 2, 3, 4, 5, 6, 7, 8] * 2, (["none"] + compressors.FAULTS) * 2)],
            [(name, 1 + k, fault) for k, fault in enumerate(["none"] + machines.FAULTS) for name in ("plant", "hvac", "pump")],
            [("first day, " + kind.__name__, k, fault) for fault in ["none"] + list(day_one.FAULTS)
             for k, kind in enumerate(day_one.KINDS)]]
    longest = max(map(len, each))
    return [some[i] for i in range(longest) for some in each if i < len(some)]


def columns_of(source):
    what, number, fault = source
    if what == "compressor":
        ts, x, _ = compressors.simulate(number, fault)
        return dict({"ts": ts}, **x)
    if what in machines.MACHINES:
        ts, x, _ = machines.simulate(what, number, fault)
        return dict({"ts": ts}, **x)
    x = day_one.machine(day_one.KINDS[number], 2 * number + 1, 1, 60)
    if fault != "none":
        day_one.put(np.random.default_rng([1, number, 1 + list(day_one.FAULTS).index(fault)]), x, fault)
    return x


def readings(x, sensor, begin, end):
    """Text, least and largest of the raw readings at times from begin to end; None without any."""
    v = np.asarray(x[sensor], float)[(x["ts"] >= begin) & (x["ts"] <= end)]
    empty, v = int(np.isnan(v).sum()), v[~np.isnan(v)]
    if not len(v):
        return "no reading" + (", %d empty" % empty if empty else ""), None
    return "mean %.4g, %.4g to %.4g, last %.4g, %d rows%s" % (
        v.mean(), v.min(), v.max(), v[-1], len(v), ", %d empty" % empty if empty else ""), (v.min(), v.max())


def said(text, sensor, step):
    """The number that directly follows the sensor's name, one unit of its last digit, the seconds for which it is said, and whether it is
    inside the range that is said with it; None: no reading is said."""
    found = re.search(r"(?:^|[ ,;])%s (-?[\d,]*\d(?:\.\d+)?)(?![\d:])" % re.escape(sensor), text)
    if not found or DIFFERENCE.match(text[found.end():]):
        return None
    number = found.group(1).replace(",", "")
    lasted = LASTED.match(text[found.end():])
    parts = lasted.group(1).split() if lasted else []
    seconds = sum(float(n.replace(",", "")) * dict(UNITS, row=step, rows=step)[unit] for n, unit in zip(parts[::2], parts[1::2]))
    ends = RANGE.match(text[found.end():])
    inside = ends is not None and float(ends.group(1).replace(",", "")) <= float(number) <= float(ends.group(2).replace(",", ""))
    return float(number), 10.0 ** -len(number.partition(".")[2]), seconds, inside


def run(source):
    """Lines of one run by what speaks, and of each named sensor its readings and whether the number said is among them."""
    x = columns_of(source)
    step, lines = int(x["ts"][1] - x["ts"][0]), []
    for e in spoke(alert_runs.play_columns(x, (), 3)):
        since, parts = e.raw.get("since") or e.time, []
        for name in x:
            reading = said(e.text, name, step) if name != "ts" else None
            if not reading:
                continue
            number, unit, seconds, inside = reading
            begin = min(since, e.time - seconds)
            now, ends = readings(x, name, begin, e.time)
            true = ends is not None and ends[0] - unit <= number <= ends[1] + unit
            parts.append((name, number, now, readings(x, name, begin - DAY, begin - 1)[0], true, inside))
        lines.append((e.kind + " " + str(e.raw.get("detector") or e.raw.get("rule") or "") + " " + e.state, e.text, parts))
    return source, lines


def chosen(runs):
    """What speaks in turn, of each the last line of one run after the other."""
    groups, texts = {}, set()
    for source, lines in runs:
        for by, (text, parts) in {by: rest for by, *rest in lines}.items():
            if parts and text not in texts:
                texts.add(text)
                groups.setdefault(by, []).append((source, by, text, parts))
    longest = max(map(len, groups.values()), default=0)
    return [groups[by][i] for i in range(longest) for by in sorted(groups) if i < len(groups[by])][:LINES]


def lines(pool):
    runs = list(pool.imap(run, sources(), 1))
    some = chosen(runs)
    print("\nAlert lines beside the raw readings of their time, and of the day before it")
    for at, ((what, number, fault), by, text, parts) in enumerate(some):
        print("%2d. %s %d, %s, %s\n    %s" % (at + 1, what, number, "no fault" if fault == "none" else fault, by, text))
        for name, value, now, before, true, inside in parts:
            note = "" if true else "   <- %g was never read" % value
            note += "   <- %g is inside the range it is said to leave" % value if inside else ""
            print("      %-11s %s%s\n      %-11s day before: %s" % (name, now, note, "", before))
    every = [parts for _, found in runs for _, _, parts in found if parts]
    if SHOW:
        for source, found in runs:
            for by, text, parts in found:
                for name, value, now, _, true, _ in parts:
                    if not true:
                        print("    never read: %s: %s\n        %s %s" % (" ".join(map(str, source)), text, name, now))
    wrong = sum(not all(part[4] for part in parts) for parts in every)
    within = sum(any(part[5] for part in parts) for parts in every)
    print("  %d lines; of all %d lines of these runs %d say a reading which never was, %d one inside the range that it leaves "
          "(must: 0, 0)" % (len(some), len(every), wrong, within), flush=True)
    table_rows.row("alert lines of %d that give a reading which never was, or one inside the range it left" % len(every), wrong + within, bar="= 0", exact=True)
    return wrong + within == 0 and len(some) == LINES
