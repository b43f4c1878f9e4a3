"""Part `cells`: values far outside a sensor's range, by kinds of sensors, in a stream alone and as one key of a fleet.

A cell is a kind of sensor x (fleet, stream) x (above, below). After 2,000 rows without a fault the sensor is .65 of its range (largest
less smallest value so far) above its largest value, or below its smallest, for 3 rows. Reported: an alert event of that stream or
key that names the sensor comes with these rows or the 10 after. Then it goes on for 40 rows; a second sensor never deviates.

day one    the same above the range at row 1,000 (a row a minute: the 17th hour)
rest       the sensor and a second one fall to rest (a hundredth of themselves) for an hour, once with a switch that goes to 0 and once
           without one. Before row 2,000 (at row 900) no alert may open, nor may one when it comes back; after it (at row 2,300) at
           most one may, and not above a notice.

The fleet has 5 keys of one kind, the third deviates. The socket is not a cell here: tests/wire asserts that an alert is the same there.
"""
import numpy as np

import alert_runs
import machines
import results as table_rows
from alert_runs import DAY, SHOW, about, opened, spoke

KEYS, SEEDS, BEYOND, ROWS = 5, 1, 0.65, 3
GROSS, EARLY, REST_BEFORE, REST_AFTER, HOUR_ROWS = 2100, 1000, 900, 2300, 60
SEVERITIES = ["notice", "warning", "serious"]


def ar(random, n, keep):
    return machines.noise(random, n, 1.0, keep)


def bounded(random, n, size):
    """A random walk that turns back at 0 and 1."""
    walk = np.abs(np.cumsum(random.normal(0, size, n)) + random.uniform(0, 1)) % 2
    return np.minimum(walk, 2 - walk)


def held(random, n, mean, draw):
    """A value drawn again after random times."""
    starts = np.cumsum(1 + random.geometric(1 / mean, n))
    return draw(n)[np.searchsorted(starts, np.arange(n), side="right")]


def hours(n, phase):
    return 2 * np.pi * (np.arange(n) / 1440 + phase)


SENSORS = {  # of n rows, all well above 0
    "normal": lambda r, n: 50 + 3 * r.standard_normal(n),
    "uniform": lambda r, n: r.uniform(22.5, 42.6, n),
    "autocorrelated": lambda r, n: 20 + 2 * ar(r, n, 0.98),
    "two levels": lambda r, n: 40 + 25 * held(r, n, 30, lambda m: r.integers(0, 2, m)) + 0.5 * r.standard_normal(n),
    "sine of the day": lambda r, n: 30 + 8 * np.sin(hours(n, r.uniform())) + 0.6 * r.standard_normal(n),
    "bounded walk": lambda r, n: 10 + 30 * bounded(r, n, 0.02),
    "coarse integer": lambda r, n: np.round(12 + 1.5 * r.standard_normal(n)),
    "lognormal": lambda r, n: 5 + np.exp(0.8 * r.standard_normal(n)),
    "bursts": lambda r, n: 4 + 0.2 * r.standard_normal(n) + machines.filtered(r.exponential(6, n) * (r.random(n) < 0.02), 0.8) * 5,
    "switching": lambda r, n: held(r, n, 20, lambda m: r.integers(0, 2, m)) * (10 + 0.3 * r.standard_normal(n)) + 0.02 * r.random(n),
    "sawtooth": lambda r, n: 1 + 3 * ((np.arange(n) / r.uniform(25, 90) + r.uniform()) % 1) + 0.02 * r.standard_normal(n),
    "season": lambda r, n: 15 + 4 * np.sin(hours(n, r.uniform()) / 12) + 2 * np.sin(hours(n, 0.3)) + 0.3 * r.standard_normal(n),
    "setpoints": lambda r, n: held(r, n, 90, lambda m: r.choice([5.0, 6.5, 7.0, 9.0], m)) + 0.05 * r.standard_normal(n),
    "heavy tails": lambda r, n: 60 + np.clip(r.standard_t(3, n), -12, 12),
    "share": lambda r, n: 0.2 + 0.75 * r.beta(5, 2, n),
}


def columns(kind, number, seed, n):
    """Time, the sensor, a second one, and a switch that is on."""
    random = np.random.default_rng([seed, list(SENSORS).index(kind), number])
    return {"ts": machines.BEGIN + DAY + 60 * np.arange(n), "x": SENSORS[kind](random, n), "second": 8 + 0.4 * random.standard_normal(n),
            "switch": np.ones(n, int)}


def deviate(x, what, at):
    """Puts it in from row at on; first row and the one after the last."""
    one = x["x"]
    past = one[:at]
    wide = past.max() - past.min()
    if what == "above":
        one[at:at + ROWS] = past.max() + BEYOND * wide
    elif what == "below":
        one[at:at + ROWS] = past.min() - BEYOND * wide
    else:  # a rest, with a switch or without one
        for name in ("x", "second"):
            x[name][at:at + HOUR_ROWS] *= 0.01
        if what == "switched":
            x["switch"][at:at + HOUR_ROWS] = 0
        return at, at + HOUR_ROWS
    return at, at + ROWS


def run(job):
    """Alert events of the stream or key that deviates, from the deviation on, and its rows' times."""
    kind, where, what, at, seed = job
    n, keys = at + 140, {}
    for number in range(KEYS) if where == "fleet" else [2]:
        keys["unit-%d" % (number + 1)] = columns(kind, number, seed, n)
    x = keys["unit-3"]
    begin, end = deviate(x, what, at)
    if what != "switched":
        for each in keys.values():
            del each["switch"]
    events = alert_runs.play_columns(alert_runs.merged(keys) if where == "fleet" else x, ["key=key"] if where == "fleet" else [])
    mine = [e for e in events if (where != "fleet" or about(e, "unit-3")) and e.time >= x["ts"][begin]]
    return job, mine, x["ts"][begin], x["ts"][end - 1]


def names(event, sensor):
    return any(top["feature"] == sensor for top in event.raw.get("top", [])) or sensor + " " in event.text


def reported(result):
    _, events, begin, end = result
    return any(e.time <= end + 600 and names(e, "x") for e in spoke(events))


def resting(result):
    """Whether a rest was taken as it must be."""
    job, events, begin, end = result
    alerts = opened(events)
    if job[3] < 2000:
        return not alerts
    worst = max([SEVERITIES.index(e.raw.get("severity") or "notice") for e in spoke(events)], default=0)
    return len(alerts) <= 1 and worst == 0


def tell(results, good):
    for r in results:
        if not good(r):
            kind, where, what, at, seed = r[0]
            print("      %s, %s, %s at row %d, seed %d: %s" % (kind, where, what, at, seed, "; ".join(
                e.text for e in spoke(r[1])[:3]) or "nothing"))


def table(title, results, good, columns_of):
    """A line a kind of sensor: in each column how many of the seeds are good; cells in which all are, and all cells."""
    heads = sorted({columns_of(r[0]) for r in results})
    print("  %-34s %s" % (title, " ".join("%15s" % h for h in heads)))
    whole = count = 0
    for kind in SENSORS:
        cells = [[good(r) for r in results if r[0][0] == kind and columns_of(r[0]) == h] for h in heads]
        whole, count = whole + sum(all(c) for c in cells), count + len(cells)
        if SHOW or not all(all(c) for c in cells):
            print("    %-32s %s" % (kind, " ".join("%15s" % ("%d of %d" % (sum(c), len(c))) for c in cells)))
    print("    %-32s %d of %d" % ("cells", whole, count), flush=True)
    if SHOW:
        tell(results, good)
    return whole, count


def cells(pool):
    seeds = alert_runs.seeds(SEEDS)
    places, rests = ("stream", "fleet"), ("switched", "together")
    jobs = [(kind, where, what, GROSS, seed) for kind in SENSORS for where in places for what in ("above", "below") for seed in seeds]
    jobs += [(kind, where, "above", EARLY, seed) for kind in SENSORS for where in places for seed in seeds]
    jobs += [(kind, where, what, at, seed) for kind in SENSORS for where in places for what in rests for at in (REST_BEFORE, REST_AFTER)
             for seed in seeds]
    results = sorted(pool.imap_unordered(run, jobs, 2), key=lambda r: jobs.index(r[0]))
    print("\nCells, %d kinds of sensors, %d seeds: those in which all seeds are as they must be (lines only of kinds with others)" % (
        len(SENSORS), len(seeds)))
    gross = table(".65 ranges outside at row %d" % GROSS, [r for r in results if r[0][3] == GROSS], reported,
                  lambda job: job[1] + " " + job[2])
    early = table(".65 ranges above at row %d" % EARLY, [r for r in results if r[0][3] == EARLY], reported, lambda job: job[1])
    before = table("rest at row %d: nothing" % REST_BEFORE, [r for r in results if r[0][3] == REST_BEFORE], resting,
                   lambda job: job[1] + " " + job[2][:8])
    after = table("rest at row %d: a notice at most" % REST_AFTER, [r for r in results if r[0][3] == REST_AFTER], resting,
                  lambda job: job[1] + " " + job[2][:8])
    print("  gross %d of %d, day one %d of %d, rest before %d of %d, after %d of %d (must: all)" % (
        gross + early + before + after), flush=True)
    for what, (whole, count) in (("gross values", gross), ("gross values on day one", early), ("a fall to rest before 2,000 rows: no alert", before),
                                 ("a fall to rest after 2,000 rows: a notice at most", after)):
        table_rows.row("cells, %s, of %d" % (what, count), whole, bar=">= %d" % count)
    return all(whole == count for whole, count in (gross, early, before, after))
