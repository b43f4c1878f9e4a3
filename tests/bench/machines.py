#!/usr/bin/python3
"""Simulated machines and their faults, as a CSV of rows and a CSV of incidents.

usage: machines.py [--machine plant|pump|press|hvac] [--seed N] [--fault NAME] ROWS.csv INCIDENTS.csv
       machines.py --list                                 the machines, their rows and the faults

plant   3 sensors, a row a minute, 28 days: two shifts (6, 14, 22 h) on working days, one at less load on Saturday, none on Sunday
pump    8 sensors, a row every 10 minutes, 28 days: water by the demand of a town, two peaks a day, later ones at weekends
press   4 sensors, a row every 5 seconds, 2 days: a cycle of 37 rows without a calendar, pauses now and then
hvac    5 sensors, a row every 5 minutes, 28 days: an office by weather and hours; a compressor that switches

Times begin on Monday, 2025-01-06, 00:00 UTC and are seconds since 1970. What is usual is drawn by the seed alone, so the runs of one
seed differ by their fault only; that is put in at a random time of the second half, at any hour:

spike        one sensor leaves its range for 3 minutes
shift        the main sensor (vibration of the plant) is higher by 0.5 for 5 hours: inside its range while the machine idles
drift        the main sensor rises to 0.6 more within 2 days
stuck        one sensor repeats its last value for 12 hours
missing      the cells of one sensor are empty for 6 hours
swapped      two sensors change places for 12 hours
correlation  the main sensor plays what it showed at another time, inside its range, for 12 hours

Other machines have their own sizes. Two days are short: there all lengths are a fourteenth. Noise is AR(1) with 0.9 a row.
"""
import argparse
import sys

import numpy as np

BEGIN = 1736121600  # 2025-01-06 00:00 UTC, a Monday
DAY = 86400
FAULTS = ["spike", "shift", "drift", "stuck", "missing", "swapped", "correlation"]
SECONDS = {"spike": 180, "shift": 5 * 3600, "drift": 2 * DAY, "stuck": DAY // 2, "missing": DAY // 4, "swapped": DAY // 2,
           "correlation": DAY // 2}


def filtered(drive, keep):
    """y[t] = keep y[t-1] + (1 - keep) drive[t], from the first drive on."""
    out, y = np.empty(len(drive)), drive[0]
    for i, v in enumerate(drive.tolist()):
        y = keep * y + (1 - keep) * v
        out[i] = y
    return out


def noise(random, n, sd=1.0, keep=0.9):
    """AR(1) of standard deviation sd."""
    drive = random.standard_normal(n)
    drive[0] *= np.sqrt((1 - keep) / (1 + keep))  # begins as wide as it goes on
    return filtered(drive, keep) * sd * np.sqrt((1 + keep) / (1 - keep))


def slow(random, n, step, days):
    """Weather and the like: sd 1, a time constant of so many days."""
    return noise(random, n, 1.0, float(np.exp(-step / (days * DAY))))


def calendar(ts):
    """Hour of the day and day of the week, Monday 0."""
    return ts % DAY / 3600, (ts - BEGIN) // DAY % 7


# ---- what is usual

def shift_load(random, ts):
    """Load in 0..1: shifts with ramps, a dip when they change, what is made (by shift), and stops of minutes."""
    minute = (ts - BEGIN) / 60
    load = np.zeros(len(ts))
    for day in range(int(minute[-1] // 1440) + 1):
        if day % 7 == 6:
            continue
        edges = [6, 14] if day % 7 == 5 else [6, 14, 22]
        edges = [day * 1440 + 60 * h + random.normal(0, 4) for h in edges]
        for begin, end in zip(edges, edges[1:]):
            level = random.uniform(0.88, 1.0) * (0.45 if day % 7 == 5 else 1)
            up, down = random.uniform(6, 14), random.uniform(3, 8)
            shape = np.clip(np.minimum((minute - begin) / up, (end - minute) / down), 0, 1)
            overshoot = 0.12 * np.exp(-np.maximum(minute - begin - up, 0) / 3) * (minute > begin + up)
            load = np.maximum(load, level * (shape + overshoot * shape))
            for _ in range(random.poisson(0.6 if level > 0.6 else 0.3)):
                at, length = random.uniform(begin + 30, end - 30), random.lognormal(2, 0.6)
                load[(minute >= at) & (minute < at + length)] = 0
    return load


def plant(random, ts):
    n, step = len(ts), 60
    hour, _ = calendar(ts)
    load = shift_load(random, ts)
    made = load * (1 + 0.02 * slow(random, n, step, 0.05))
    warm = filtered(made, float(np.exp(-1 / 45)))
    return {
        "temperature": 34 + 4 * np.sin(2 * np.pi * (hour - 9) / 24) + 2 * slow(random, n, step, 2) + 8 * warm + noise(random, n, 0.2),
        "vibration": 0.3 + 1.2 * made + noise(random, n) * (0.04 + 0.04 * np.minimum(load, 1)),
        "current": 2 + 10 * made + noise(random, n) * (0.15 + 0.2 * np.minimum(load, 1)),
    }


def pump(random, ts):
    n, step = len(ts), 600
    hour, weekday = calendar(ts)
    late = np.where(weekday >= 5, 2.0, 0.0)
    peak = np.exp(-((hour - 7.5 - late) / 1.8) ** 2) + 0.8 * np.exp(-((hour - 19.5) / 2.4) ** 2)
    demand = 0.35 + 0.5 * peak * np.where(weekday >= 5, 0.85, 1) + 0.15 * (hour > 7) * (hour < 22)
    demand = np.maximum(0.2, demand * (1 + 0.06 * slow(random, n, step, 1)) + noise(random, n, 0.02, 0.7))
    weather = slow(random, n, step, 3)
    flow = 120 * demand + noise(random, n, 1)
    head = 5.2 - 0.9 * demand ** 2 + noise(random, n, 0.03)
    power = 4 + 0.16 * flow * head / 5 + noise(random, n, 0.25)
    return {
        "flow": flow,
        "pressure_in": 1.8 - 0.3 * demand + 0.05 * slow(random, n, step, 2) + noise(random, n, 0.02),
        "pressure_out": head,
        "power": power,
        "bearing": 38 + 0.5 * filtered(power, 0.8) + 3 * weather + noise(random, n, 0.3),
        "motor": 45 + 0.9 * filtered(power, 0.9) + 3 * weather + noise(random, n, 0.4),
        "vibration": 0.6 + 1.1 * demand ** 2 + noise(random, n, 0.05),
        "level": 3 + 0.8 * np.sin(2 * np.pi * (hour - 4) / 24) - 0.4 * demand + 0.1 * slow(random, n, step, 1),
    }


def press(random, ts):
    n, step, cycle = len(ts), 5, 37
    phase, at, pause = np.zeros(n), 0, 0
    for i in range(n):  # a cycle runs to its end; then, rarely, the press waits
        if at == 0 and pause == 0 and random.random() < 0.006:
            pause = int(random.lognormal(3.5, 0.6))
        if pause > 0:
            pause -= 1
            continue
        phase[i] = at
        at = (at + 1) % cycle
    x = phase / cycle
    stroke = np.where(x < 0.35, x / 0.35, np.where(x < 0.55, 1, np.maximum(0, (0.9 - x) / 0.35)))
    force = 800 * np.where((x > 0.3) & (x < 0.55), np.sin(np.pi * np.clip((x - 0.3) / 0.25, 0, 1)), 0)
    force *= 1 + 0.03 * slow(random, n, step, 0.05)
    return {
        "force": 12 + force + noise(random, n, 5),
        "position": 250 * stroke + noise(random, n, 0.8),
        "oil": 41 + 5 * filtered(np.where(phase > 0, 1.0, 0.2), 0.998) + 1.5 * slow(random, n, step, 0.3) + noise(random, n, 0.1),
        "power": 3 + 0.02 * force + 4 * np.abs(np.gradient(stroke)) * cycle + noise(random, n, 0.3),
    }


def hvac(random, ts):
    n, step = len(ts), 300
    hour, weekday = calendar(ts)
    outside = 4 + 5 * np.sin(2 * np.pi * (hour - 9) / 24) + 3 * slow(random, n, step, 3) + noise(random, n, 0.2)
    busy = np.where((hour > 7) & (hour < 19) & (weekday < 5), 1.0, 0.0)
    people = filtered(busy * (1 + 0.1 * slow(random, n, step, 0.5)), 0.93)
    target = np.where(busy > 0, 21.5, 18.5)
    room, on, rooms, running = 20.0, False, np.empty(n), np.empty(n)
    for i in range(n):  # a compressor with a band of half a degree
        on = room < target[i] - 0.25 or (on and room < target[i] + 0.25)
        room += 0.32 * on - 0.012 * (room - outside[i]) + 0.03 * people[i]
        rooms[i], running[i] = room, on
    heat = filtered(running, 0.7)
    return {
        "outside": outside,
        "room": rooms + noise(random, n, 0.08),
        "supply": 22 + 18 * heat + noise(random, n, 0.4),
        "power": 0.4 + 6 * running * (1 - 0.015 * outside) + 0.6 * busy + noise(random, n, 0.15),
        "co2": 430 + 520 * people + noise(random, n, 15),
    }


class Machine:
    def __init__(self, make, step, days, main, shift, pair, digits):
        self.make, self.step, self.days = make, step, days
        self.main, self.shift, self.pair, self.digits = main, shift, pair, digits


MACHINES = {
    "plant": Machine(plant, 60, 28, "vibration", 0.5, ("current", "vibration"), 3),
    "pump": Machine(pump, 600, 28, "vibration", 0.5, ("pressure_in", "vibration"), 3),
    "press": Machine(press, 5, 2, "power", 4.0, ("power", "oil"), 2),
    "hvac": Machine(hvac, 300, 28, "room", 2.0, ("room", "supply"), 2),
}


# ---- faults

def other_time(random, x, begin, end, step):
    """What x showed at another time, where the two differ: by a quarter of its range or more in a fourth of the rows."""
    hours = max(1, 3600 // step)
    wide = np.ptp(x) / 4
    backs = [back for back in range(hours, begin, hours)] or [begin]
    for back in random.permutation(backs):
        past = x[begin - back:end - back]
        if np.mean(np.abs(past - x[begin:end]) > wide) >= 0.25:
            return past.copy()
    back = backs[len(backs) // 2]
    return x[begin - back:end - back].copy()


def put_fault(random, machine, x, fault):
    """Changes x in place; first row and the one after the last."""
    n, names = len(x[machine.main]), list(x)
    seconds = SECONDS[fault] * min(1, machine.days / 28)
    length = max(1, int(round(seconds / machine.step)))
    begin = int(random.integers(n // 2, n - length - 1))
    end = begin + length
    one = names[random.integers(len(names))]
    main = x[machine.main]
    if fault == "spike":
        x[one][begin:end] += random.choice([-1, 1]) * 1.4 * np.ptp(x[one])
    elif fault == "shift":
        main[begin:end] += machine.shift
    elif fault == "drift":
        main[begin:end] += 1.2 * machine.shift * np.arange(1, length + 1) / length
    elif fault == "stuck":
        x[one][begin:end] = x[one][begin - 1]
    elif fault == "missing":
        x[one][begin:end] = np.nan
    elif fault == "swapped":
        a, b = machine.pair
        x[a][begin:end], x[b][begin:end] = x[b][begin:end].copy(), x[a][begin:end].copy()
    elif fault == "correlation":
        main[begin:end] = other_time(random, main, begin, end, machine.step)
    return begin, end


def simulate(name="plant", seed=1, fault="none"):
    """Times, the sensors by name, and the incident as (first time, last time, name) or None."""
    machine = MACHINES[name]
    kind = list(MACHINES).index(name)
    ts = BEGIN + machine.step * np.arange(machine.days * DAY // machine.step)
    x = machine.make(np.random.default_rng([seed, kind]), ts)
    x = {k: np.round(v, machine.digits) for k, v in x.items()}
    if fault == "none":
        return ts, x, None
    begin, end = put_fault(np.random.default_rng([seed, kind, 1 + FAULTS.index(fault)]), machine, x, fault)
    return ts, x, (int(ts[begin]), int(ts[end - 1]), fault)


def write(rows, incidents, name, seed, fault):
    ts, x, incident = simulate(name, seed, fault)
    digits = MACHINES[name].digits
    columns = [["%.*f" % (digits, v) if v == v else "" for v in values.tolist()] for values in x.values()]
    with open(rows, "w") as f:
        f.write(",".join(["ts"] + list(x)) + "\n")
        f.write("".join(",".join(cells) + "\n" for cells in zip(map(str, ts.tolist()), *columns)))
    with open(incidents, "w") as f:
        f.write("start,end,name\n")
        if incident:
            f.write("%d,%d,%s\n" % incident)


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--machine", default="plant", choices=list(MACHINES))
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--fault", default="none", choices=["none"] + FAULTS)
    p.add_argument("--list", action="store_true")
    p.add_argument("rows", nargs="?")
    p.add_argument("incidents", nargs="?")
    a = p.parse_args()
    if a.list:
        for name, m in MACHINES.items():
            print("%-6s a row every %d s, %d days, %d rows" % (name, m.step, m.days, m.days * DAY // m.step))
        print("faults: " + ", ".join(FAULTS))
        return 0
    if not a.rows or not a.incidents:
        p.error("two files to write are needed: the rows, and the incidents")
    write(a.rows, a.incidents, a.machine, a.seed, a.fault)
    return 0


if __name__ == "__main__":
    sys.exit(main())
