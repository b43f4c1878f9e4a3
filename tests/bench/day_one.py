"""Part `day`: the first day of machines without a fault, ten kinds of them, and faults that happen on it.

Each kind has three sensors a, b and c, begins at any hour of a day, and differs from its like by its parameters:

switch    runs and rests for random times           cycles    repeats one shape, of 7 to 40 minutes
batches   heats, holds and cools for hours          cold      starts cold, warms up for hours, is then held
night     works by day, rests at night              valve     opens in steps; flow and pressure follow
tank      fills and empties, by a pump with edges   hvac      a room by the weather, its compressor switches
conveyor  a counter, a drive, stops for minutes     pump      set points that change every few hours

Fleets are 20 keys in one stream, a row a minute: 20 of a kind (`kind`), and two of each kind (`mixed`), this one also with a row
every 10 s; and each machine alone. A fleet has alert.budget's 1 a day, for all its keys. Lines: all alert events that are published.

Faults begin at row 600 or later, where sensor a moves, in a stream alone and in a mixed fleet: stuck (3 h), spike (3 rows, three
ranges above all it showed), missing (empty for 2 h). Found: an alert of that key opens or is updated while the fault lasts, of a spike
within 10 rows. By chance: the same time without the fault.
"""
import numpy as np

import alert_runs
import machines
import results as table_rows
from alert_runs import DAY, SHOW, about, by_kind, opened, spoke

MUST, KEYS, SEEDS = 1, 20, 2
FAULTS = {"stuck": 180, "spike": 3, "missing": 120}  # rows of a minute
FOUND = 0.9  # of the faults


def noise(random, n, sd, keep=0.5):
    return machines.noise(random, n, sd, keep)


def lag(x, minutes, step):
    return machines.filtered(x, float(np.exp(-step / 60 / minutes)))


def runs(random, n, step, on, off, least=2):
    """0 and 1 in turns, of exponential times with these means in minutes."""
    state, at, out = random.random() < on / (on + off), 0, np.zeros(n)
    while at < n:
        length = max(1, int((least + random.exponential(on if state else off)) * 60 / step))
        out[at:at + length] = state
        at, state = at + length, not state
    return out


def steps(random, n, step, minutes, levels):
    """Holds one of the levels for times of this mean."""
    out, at = np.empty(n), 0
    while at < n:
        length = max(1, int((5 + random.exponential(minutes)) * 60 / step))
        out[at:at + length] = levels[random.integers(len(levels))]
        at += length
    return out


def switch(random, n, step, hour):
    on = runs(random, n, step, random.uniform(20, 120), random.uniform(10, 90))
    speed = on * (random.uniform(800, 1500) + noise(random, n, 8))
    return {"a": on * random.uniform(5, 20) * (1 + noise(random, n, 0.03)) + noise(random, n, 0.02), "b": speed,
            "c": 22 + random.uniform(15, 35) * lag(on, random.uniform(8, 30), step) + noise(random, n, 0.2)}


def cycles(random, n, step, hour):
    length, minute = random.uniform(7, 40), np.arange(n) * step / 60 + random.uniform(0, 40)
    phase = minute / length % 1
    stroke = np.clip(np.minimum(phase / 0.2, (0.7 - phase) / 0.15), 0, 1)
    return {"a": 12 + random.uniform(60, 200) * stroke ** 2 + noise(random, n, 1.5), "b": 250 * stroke + noise(random, n, 1),
            "c": 41 + 8 * lag(stroke, random.uniform(2, 10), step) + noise(random, n, 0.15)}


def batches(random, n, step, hour):
    out, stir, at, hot = np.zeros(n), np.zeros(n), -int(random.uniform(0, 120) * 60 / step), random.uniform(60, 140)
    while at < n:
        length = int(random.uniform(100, 260) * 60 / step)
        phase = np.linspace(0, 1, length)
        level = hot * random.uniform(0.9, 1.05)
        i = np.arange(max(at, 0), min(at + length, n))
        if len(i):
            out[i] = (level * np.clip(np.minimum(phase / 0.25, (1 - phase) / 0.3), 0, 1))[i - at]
            stir[i] = ((phase > 0.05) * (phase < 0.9) * 120)[i - at]
        at += length + int(random.uniform(5, 40) * 60 / step)
    return {"a": 24 + lag(out, 6, step) + noise(random, n, 0.3), "b": 1 + 0.02 * lag(out, 12, step) + noise(random, n, 0.01),
            "c": stir + (stir > 0) * noise(random, n, 1)}


def cold(random, n, step, hour):
    minute = np.arange(n) * step / 60
    warm = 1 - np.exp(-minute / random.uniform(60, 240))
    return {"a": 18 + random.uniform(30, 60) * warm + noise(random, n, 0.25, 0.9), "b": 15 + 40 * warm ** 2 + noise(random, n, 0.3, 0.9),
            "c": 6 + 9 * (1 - warm) + noise(random, n, 0.3)}


def night(random, n, step, hour):
    begin, length = random.uniform(5, 9), random.uniform(8, 15)
    work = np.clip(np.minimum((hour - begin) * 4, (begin + length - hour) * 6), 0, 1)
    work *= 1 - 0.8 * (np.abs(hour - begin - 4.5) < 0.35)
    load = work * (1 + 0.05 * noise(random, n, 1, 0.98))
    return {"a": 0.3 + 2 * load + noise(random, n, 1) * (0.02 + 0.08 * load),
            "b": 2 + 12 * load + noise(random, n, 1) * (0.05 + 0.2 * load),
            "c": 20 + 25 * lag(load, 40, step) + noise(random, n, 0.2, 0.9)}


def valve(random, n, step, hour):
    position = steps(random, n, step, random.uniform(20, 90), np.arange(0, 105, random.choice([5, 10, 25])))
    real = lag(position, 1.5, step)
    return {"a": 1.2 * real * (1 + noise(random, n, 0.02)) + noise(random, n, 0.3), "b": position,
            "c": 6 - 0.025 * real + noise(random, n, 0.02)}


def tank(random, n, step, hour):
    level, on, levels, pumps = random.uniform(1, 4), False, np.empty(n), np.empty(n)
    drain, fill = random.uniform(0.01, 0.03) * step / 60, random.uniform(0.05, 0.12) * step / 60
    draw = drain * np.maximum(0.2, 1 + 0.4 * noise(random, n, 1, 0.97))
    for i in range(n):
        on = level < 1 or (on and level < 4)
        level += fill * on - draw[i]
        levels[i], pumps[i] = level, on
    return {"a": levels + noise(random, n, 0.01), "b": pumps * (3.4 + noise(random, n, 0.05)),
            "c": 60 * draw / step * 100 + noise(random, n, 0.05)}


def hvac(random, n, step, hour):
    outside = random.uniform(-2, 12) + 5 * np.sin(2 * np.pi * (hour - 9) / 24) + noise(random, n, 0.8, 0.99)
    room, on, rooms, power = 20.0, False, np.empty(n), np.empty(n)
    speed = step / 300
    for i in range(n):
        target = 21.5 if 7 < hour[i] < 19 else 18.5
        on = room < target - 0.25 or (on and room < target + 0.25)
        room += speed * (0.32 * on - 0.012 * (room - outside[i]))
        rooms[i], power[i] = room, on
    return {"a": rooms + noise(random, n, 0.06), "b": 0.4 + 6 * power + noise(random, n, 0.1), "c": outside}


def conveyor(random, n, step, hour):
    run = runs(random, n, step, random.uniform(60, 200), random.uniform(3, 12))
    speed = run * random.uniform(0.4, 1.2)
    items = np.cumsum(random.poisson(speed * step / 8))
    return {"a": run * (random.uniform(3, 8) + noise(random, n, 0.2)) + noise(random, n, 0.02), "b": items.astype(float),
            "c": speed + run * noise(random, n, 0.005)}


def pump(random, n, step, hour):
    target = lag(steps(random, n, step, random.uniform(60, 200), random.uniform(2, 9, 4)), 1, step)
    flow = random.uniform(6, 14) * np.sqrt(target) * (1 + noise(random, n, 0.02, 0.9))
    return {"a": target + noise(random, n, 0.04), "b": flow, "c": 2 + 0.05 * target * flow + noise(random, n, 0.1)}


KINDS = [switch, cycles, batches, cold, night, valve, tank, hvac, conveyor, pump]


def machine(kind, number, seed, step):
    """Columns of one machine of a kind: a day of rows."""
    random = np.random.default_rng([seed, KINDS.index(kind), number])
    n = DAY // step
    ts = machines.BEGIN + DAY + step * np.arange(n)
    hour = (random.uniform(0, 24) + np.arange(n) * step / 3600) % 24
    return dict({"ts": ts}, **{name: np.round(x, 3) for name, x in kind(random, n, step, hour).items()})


def fleet(what, seed, step):
    """Columns by key; what: the name of a kind, or mixed."""
    keys = {}
    for i in range(KEYS):
        kind = KINDS[i // 2] if what == "mixed" else next(k for k in KINDS if k.__name__ == what)
        keys["%s-%02d" % (kind.__name__, i + 1)] = machine(kind, i + 1, seed, step)
    return keys


def run_fleet(job):
    what, seed, step = job
    return job, alert_runs.play_columns(alert_runs.merged(fleet(what, seed, step)), ["key=key"])


def run_alone(job):
    kind, number, seed = job
    return job, alert_runs.play_columns(machine(KINDS[kind], number, seed, 60))


def put(random, x, fault):
    """Changes sensor a of the columns; first row of the fault and the one after the last."""
    a, length = x["a"], FAULTS[fault]
    last = len(a) - length - 15
    moves = [i for i in range(600, last) if np.ptp(a[i:i + length]) > 0.1 * np.ptp(a[:i])]
    begin = int(moves[random.integers(len(moves))]) if moves else int(random.integers(600, last))
    end = begin + length
    if fault == "spike":
        a[begin:end] = a[:begin].max() + 3 * np.ptp(a[:begin])
    else:
        a[begin:end] = a[begin - 1] if fault == "stuck" else np.nan
    return begin, end


def faulty(job):
    """Whether a fault is found, and by chance, alone and in a mixed fleet."""
    kind, fault, seed = job
    name, keys = "%s-%02d" % (KINDS[kind].__name__, 2 * kind + 1), fleet("mixed", seed, 60)
    calm = {key: dict(x) for key, x in keys.items()}
    x = {column: v.copy() for column, v in keys[name].items()}
    begin, end = put(np.random.default_rng([seed, kind, 1 + list(FAULTS).index(fault)]), x, fault)
    keys[name] = x
    first, last = x["ts"][begin], x["ts"][end - 1] + (600 if fault == "spike" else 0)
    found = [bool([e for e in spoke(alert_runs.play_columns(calm[name] if quiet else x)) if first <= e.time <= last])
             for quiet in (0, 1)]
    found.append(bool([e for e in spoke(alert_runs.play_columns(alert_runs.merged(keys), ["key=key"]))
                       if about(e, name) and first <= e.time <= last]))
    return job, found


def shown(events):
    for e in opened(events):
        print("      %6d %s: %s" % (e.row, e.kind, e.text))


def calm(pool, seeds):
    """Alerts of the first day of each fleet, and whether they keep the limit."""
    jobs = [(what, seed, 60) for what in [k.__name__ for k in KINDS] + ["mixed"] for seed in seeds]
    jobs += [("mixed", seed, 10) for seed in seeds]
    fleets = dict(pool.imap_unordered(run_fleet, jobs))
    alone = dict(pool.imap_unordered(run_alone, [(k, 2 * k + 1, seed) for k in range(len(KINDS)) for seed in seeds]))
    worst = []
    print("  %-16s %8s %8s %8s  opened by" % ("fleet of 20", "alerts", "lines", "asked"))
    for what, step in [(k.__name__, 60) for k in KINDS] + [("mixed", 60), ("mixed", 10)]:
        events = [fleets[what, seed, step] for seed in seeds]
        mean = sum(len(opened(e)) for e in events) / len(events)
        worst.append(mean)
        print("  %-16s %8.1f %8.1f %8d  %s" % (what + (", 10 s" if step == 10 else ""), mean, sum(map(len, events)) / len(events), MUST,
                                             by_kind([e for some in events for e in some])), flush=True)
        if SHOW:
            shown(events[0])
    events = list(alone.values())
    lone = sum(len(opened(e)) for e in events) / len(events)
    print("  %-16s %8.2f %8.2f %8d  %s" % ("alone, each", lone, sum(map(len, events)) / len(events), MUST,
                                         by_kind([e for some in events for e in some])))
    return worst, lone


def day(pool):
    seeds = alert_runs.seeds(SEEDS)
    print("\nDay one without faults, %d seeds, budget 1/day: alerts opened and lines published, the mean" % len(seeds))
    worst, lone = calm(pool, seeds)
    jobs = [(kind, fault, seeds[0]) for kind in range(len(KINDS)) for fault in FAULTS]
    found = dict(pool.imap_unordered(faulty, jobs))
    print("  faults of day one: found alone, by chance, found in a mixed fleet")
    for fault in FAULTS:
        some = [found[kind, fault, seeds[0]] for kind in range(len(KINDS))]
        missed = ["%s (%s)" % (KINDS[k].__name__, " and ".join(w for w, f in (("alone", s[0]), ("fleet", s[2])) if not f))
                  for k, s in enumerate(some) if not (s[0] and s[2])]
        print("    %-10s %2d, %d, %2d of %d%s" % ((fault,) + tuple(sum(s[k] for s in some) for k in range(3)) + (
            len(some), "; missed: " + ", ".join(missed) if missed else "")))
    total = sum(s[0] + s[2] for s in found.values())
    table_rows.row("day one, fleets of 20: alerts, the worst of %d fleets" % len(worst), max(worst), bar="<= %g" % MUST)
    table_rows.row("day one, fleets of 20: alerts, mean", float(np.mean(worst)))
    table_rows.row("day one: faults found of %d" % (2 * len(found)), int(total), bar=">= %.0f" % (FOUND * 2 * len(found)))
    good = max(worst) <= MUST and lone <= MUST and total >= FOUND * 2 * len(found)
    print("  fleets: %.1f alerts on day one, the worst of %d (mean %.1f, mixed %.1f; must: <= %d); faults %d of %d (must: %.0f)" % (
        max(worst), len(worst), np.mean(worst), worst[-2], MUST, total, 2 * len(found), FOUND * 2 * len(found)), flush=True)
    return good
