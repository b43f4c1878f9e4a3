"""Part `compressors`: air compressors with seven small faults each, and three peers on the same rows.

A compressor fills a tank between two pressures; what the plant draws goes by hour, weekday and bursts. A row a minute, 14 days.

pressure   of the tank, between its two edges
current    0 but for the meter's noise while it rests
oil        follows the load and the hall with a lag of half an hour
vibration  while it runs
discharge  a value every fifth row, empty between
hall       ambient temperature, measured every 15 minutes and repeated between; a day's cycle, weather, a season
valve      of the outlet, in steps of 5
energy     kWh counted, integers; every third machine has it

Faults are put in at a random time of the second half, of sizes at which a regression on the other sensors finds about half (what it
finds, less what it would by chance):

spike        3 rows of one sensor by a third of its range
bias         oil, discharge or pressure reads wrongly by a twelfth of its range for 8 hours
drift        the same within a day, up to a seventh
stuck        current, oil, vibration or pressure repeats its last value for 90 minutes
noise        the noise of one sensor grows by a sixteenth of its range for 3 hours
correlation  current or vibration plays what it showed at another time for 45 minutes
leak         the tank loses an eighth of what the compressor can deliver, for a day
"""
import numpy as np

import alert_runs
import machines
import results as table_rows
from alert_runs import DAY, HOUR, SHOW, first_in, opened, span

FAULTS = ["spike", "bias", "drift", "stuck", "noise", "correlation", "leak"]
SECONDS = {"spike": 180, "bias": 8 * HOUR, "drift": DAY, "stuck": 1.5 * HOUR, "noise": 3 * HOUR, "correlation": 0.75 * HOUR,
           "leak": DAY}
SENSORS = {"spike": ["pressure", "oil", "vibration", "discharge"], "bias": ["oil", "discharge", "pressure"],
           "drift": ["oil", "discharge", "pressure"], "stuck": ["current", "oil", "vibration", "pressure"],
           "noise": ["current", "oil", "vibration", "pressure"], "correlation": ["current", "vibration"], "leak": ["pressure"]}
STEP, DAYS = 60, 14
DIGITS = {"pressure": 2, "current": 2, "oil": 1, "vibration": 3, "discharge": 1, "hall": 1, "valve": 0}
MACHINES, MUST, FALSE = 12, 68, 0.5
FIT = 0.45  # of the rows: what the regression is fitted on; faults come later


def tank(random, demand, leak):
    """Whether the compressor runs, and the pressure at the end of each minute."""
    low, high = random.uniform(5.8, 6.4), random.uniform(7.0, 7.8)
    capacity, volume = random.uniform(1.5, 2.1), random.uniform(9, 16)  # in mean demands, and in their minutes a bar
    p, on, pressure, running = high - 0.3, False, np.empty(len(demand)), np.empty(len(demand))
    for i, draw in enumerate((demand + capacity * leak).tolist()):
        on = p < low or (on and p < high)
        p = max(0.0, p + (capacity * on - draw * (p > 1)) / volume)
        pressure[i], running[i] = p, on
    return pressure, running


def machine(seed, leak=None):
    """Times, and the sensors of one compressor by name; leak: a share of its capacity in each row."""
    random = np.random.default_rng([seed, 27])
    n = DAYS * DAY // STEP
    ts = machines.BEGIN + STEP * np.arange(n) + DAY * int(random.integers(7))
    hour, weekday = machines.calendar(ts)
    begin, height = random.uniform(5, 8), random.uniform(0.4, 0.9)
    shift = np.clip(np.minimum(hour - begin, begin + random.uniform(9, 14) - hour), 0, 1)
    demand = 0.35 + height * shift * np.where(weekday >= 5, random.uniform(0.1, 0.6), 1)
    for at in np.flatnonzero(random.random(n) < random.uniform(20, 50) / 1440):
        demand[at:at + int(random.lognormal(1.8, 0.5))] += random.uniform(0.1, 0.7)
    demand = np.maximum(0.1, demand + machines.noise(random, n, 0.06))
    pressure, running = tank(random, demand, np.zeros(n) if leak is None else leak)
    hall = (random.uniform(8, 18) + 4 * np.sin(2 * np.pi * (hour - 9) / 24) + 2.5 * machines.slow(random, n, STEP, 2)
            + random.uniform(-0.3, 0.3) * (ts - ts[0]) / DAY)
    effort = running * (1 + 0.05 * (pressure - 6.8)) * (1 + 0.02 * machines.slow(random, n, STEP, 0.2))
    warm = machines.filtered(effort, float(np.exp(-1 / random.uniform(20, 40))))
    x = {"pressure": pressure + random.standard_normal(n) * 0.02,
         "current": random.uniform(30, 60) * effort + random.standard_normal(n) * (0.03 + 0.5 * running),
         "oil": hall + random.uniform(35, 50) * warm + 12 + machines.noise(random, n, 0.2),
         "vibration": running * random.uniform(1.5, 3) * (0.6 + 0.4 * effort) + random.standard_normal(n) * (0.01 + 0.08 * running),
         "discharge": hall + 8 + 75 * machines.filtered(effort, float(np.exp(-1 / random.uniform(3, 8)))) + machines.noise(random, n, 0.5),
         "hall": np.repeat(hall[::15], 15)[:n],
         "valve": 5 * np.round(np.clip(40 * demand + random.standard_normal(n), 0, 100) / 5)}
    if seed % 3 == 0:
        x["energy"] = np.floor(np.cumsum(effort) * 22 / 60).astype(int)
    return ts, x


def put(random, x, fault, sensor, begin, end):
    """Changes x in place."""
    one = x[sensor]
    wide, length = np.ptp(one), end - begin
    sign = random.choice([-1, 1])
    if fault == "spike":
        one[begin:end] += sign * wide / 3
    elif fault == "bias":
        one[begin:end] += sign * wide / 12
    elif fault == "drift":
        one[begin:end] += sign * wide / 7 * np.arange(1, length + 1) / length
    elif fault == "stuck":
        one[begin:end] = one[begin - 1]
    elif fault == "noise":
        one[begin:end] += random.standard_normal(length) * wide / 16
    elif fault == "correlation":
        one[begin:end] = machines.other_time(random, one, begin, end, STEP)


def simulate(seed, fault="none"):
    """Times, sensors by name, and the incident as (first time, last time, sensor) or None."""
    ts, x = machine(seed)
    if fault == "none":
        return ts, finished(x), None
    random = np.random.default_rng([seed, 27, 1 + FAULTS.index(fault)])
    length = int(SECONDS[fault] // STEP)
    begin = int(random.integers(len(ts) // 2, len(ts) - length - 1))
    end = begin + length
    sensor = SENSORS[fault][random.integers(len(SENSORS[fault]))]
    if fault == "leak":
        leak = np.zeros(len(ts))
        leak[begin:end] = 0.12
        _, x = machine(seed, leak)
    else:
        put(random, x, fault, sensor, begin, end)
    return ts, finished(x), (int(ts[begin]), int(ts[end - 1]), sensor)


def finished(x):
    """As the meters send it: the discharge every fifth row."""
    x = dict(x, discharge=np.where(np.arange(len(x["discharge"])) % 5 == 0, x["discharge"], np.nan))
    return {name: np.round(v, DIGITS[name]) if name in DIGITS else v for name, v in x.items()}


# ---- peers

def held(x):
    """A matrix of the sensors, where an empty cell repeats the last value."""
    columns = []
    for v in x.values():
        v = np.asarray(v, float)
        last = np.maximum.accumulate(np.where(np.isnan(v), 0, np.arange(len(v))))
        columns.append(v[last])
    return np.column_stack(columns)


def ewma(rows):
    """Largest |z| of a row's sensors against their own moving mean and deviation; rows: runs x rows x sensors."""
    mean, square, score = rows[:, 0].copy(), np.full(rows[:, 0].shape, np.nan), np.zeros(rows.shape[:2])
    square[:] = rows[:, :200].var(axis=1) + 1e-9
    for i in range(1, rows.shape[1]):
        residual = rows[:, i] - mean
        score[:, i] = np.nanmax(np.abs(residual) / np.sqrt(square), axis=1)
        mean += 0.1 * residual
        square += 0.002 * (residual ** 2 - square)
    return score


def regression(rows):
    """Largest |z| of the means over 1, 10 and 60 rows of the residuals of each sensor by the others; rows: rows x sensors."""
    n, d = rows.shape
    fit = int(FIT * n)
    z = (rows - rows[:fit].mean(axis=0)) / (rows[:fit].std(axis=0) + 1e-9)
    score = np.zeros(n)
    for j in range(d):
        inputs = np.column_stack([np.ones(n), np.delete(z, j, 1)])
        weights = np.linalg.solve(inputs[:fit].T @ inputs[:fit] + np.eye(d), inputs[:fit].T @ z[:fit, j])
        total = np.concatenate([[0], np.cumsum(z[:, j] - inputs @ weights)])
        for length in (1, 10, 60):
            mean = np.zeros(n)
            mean[length - 1:] = (total[length:] - total[:-length]) / length
            score = np.maximum(score, np.abs(mean) / (mean[:fit].std() + 1e-9))
    return score


def followed(z, rows):
    """The exponentially weighted mean of each column over that many rows."""
    keep, y, out = np.exp(-1 / rows), z[0].copy(), np.empty_like(z)
    for i, row in enumerate(z):
        y = keep * y + (1 - keep) * row
        out[i] = y
    return out


def lagged(rows):
    """As regression, but each sensor by the row before, means of 5 and 30 rows, the others now, and the hour. The means of a residual
    over 1 to 360 rows and its size over 30 are in units that one row in 2,000 of the fitted ones exceeds."""
    n, d = rows.shape
    fit, hour = int(FIT * n), 2 * np.pi * (np.arange(n) % 1440) / 1440
    z = (rows - rows[:fit].mean(axis=0)) / (rows[:fit].std(axis=0) + 1e-9)
    before = [np.ones(n), np.sin(hour), np.cos(hour), np.vstack([z[:1], z[:-1]]), followed(z, 5), followed(z, 30)]
    before[4:] = [np.vstack([m[:1], m[:-1]]) for m in before[4:]]
    score = np.zeros(n)
    for j in range(d):
        inputs = np.column_stack(before + [np.delete(z, j, 1)])
        weights = np.linalg.solve(inputs[:fit].T @ inputs[:fit] + np.eye(inputs.shape[1]), inputs[:fit].T @ z[:fit, j])
        residual = z[:, j] - inputs @ weights
        for length, x in [(1, residual), (10, residual), (60, residual), (360, residual), (30, residual ** 2)]:
            total = np.concatenate([[0], np.cumsum(x)])
            mean = np.zeros(n)
            mean[length - 1:] = np.abs(total[length:] - total[:-length]) / length
            mean = np.sqrt(mean) if length == 30 else mean
            score = np.maximum(score, mean / (np.quantile(mean[:fit], 0.9995) + 1e-9))
    return score


def episodes(score, threshold):
    """Rows at which an alert opens: above the threshold after an hour below."""
    over = np.flatnonzero(score > threshold)
    return over[np.concatenate([[True], np.diff(over) > 60])] if len(over) else over


def peer_found(scores, incidents, rate):
    """Faults found, and by chance, with the lowest threshold that has at most `rate` alerts a day in the second half without a fault."""
    calm = [s[int(FIT * len(s)):] for (seed, fault), s in scores.items() if fault == "none"]
    days = sum(len(s) for s in calm) * STEP / DAY
    grid = np.unique(np.quantile(np.concatenate(calm), 1 - np.geomspace(1e-6, 0.1, 120)))
    rates = [sum(len(episodes(s, t)) for s in calm) / days for t in grid]
    good = [t for i, t in enumerate(grid) if max(rates[i:]) <= rate]
    threshold = min(good) if good else np.inf
    found = {fault: [0, 0] for fault in FAULTS}  # with the fault, and by chance without it
    for (seed, fault), (begin, end, grace) in incidents.items():
        for k, which in enumerate((fault, "none")):
            rows = episodes(scores[seed, which], threshold)
            found[fault][k] += bool(((rows >= begin) & (rows <= end + grace)).any())
    return found


# ---- the part

def run(seed):
    """Of one machine: events and incident of each fault, and the peers' scores."""
    results, incidents, rows = {}, {}, []
    scores = {"ewma": {}, "regression": {}, "lagged": {}}
    for fault in ["none"] + FAULTS:
        ts, x, incident = simulate(seed, fault)
        results[fault] = (alert_runs.play_columns(dict({"ts": ts}, **x), (), DIGITS), incident)
        matrix = held({name: v for name, v in x.items() if name != "energy"})
        rows.append(matrix)
        scores["regression"][seed, fault] = regression(matrix)
        scores["lagged"][seed, fault] = lagged(matrix)
        if incident:
            begin, end = (int((t - ts[0]) // STEP) for t in incident[:2])
            incidents[seed, fault] = (begin, end, 60 if end - begin < 60 else 0)
    scores["ewma"] = {(seed, fault): score for fault, score in zip(["none"] + FAULTS, ewma(np.array(rows)))}
    return seed, results, scores, incidents


def show(seed, results):
    for e in opened(results["none"][0]):
        print("      false, machine %d: %s" % (seed, e.text))
    for fault in FAULTS:
        events, (begin, end, sensor) = results[fault]
        if first_in(events, begin, end) is None:
            print("      missed, machine %d: %s of %s" % (seed, fault, sensor))


def compressors(pool):
    scores, incidents, runs = {"ewma": {}, "regression": {}, "lagged": {}}, {}, {}
    for seed, results, some, when in pool.imap_unordered(run, alert_runs.seeds(MACHINES)):
        runs[seed] = results
        incidents.update(when)
        for name in scores:
            scores[name].update(some[name])
    count = len(runs)
    calm = [runs[seed]["none"][0] for seed in sorted(runs)]
    rates = np.array([len(opened(e)) for e in calm]) / DAYS
    false = float(rates.mean())
    late = sum(e.row > 1440 for events in calm for e in opened(events)) / (DAYS - 1) / count
    print("\nCompressors, %d machines, %d days, a row a minute\n  false alerts a day: %.2f (asked %.1f), by machine %.2f to %.2f; "
          "after the first day %.2f; %s" % (count, DAYS, false, FALSE, rates.min(), rates.max(), late,
                                           alert_runs.by_kind([e for events in calm for e in events])))
    peers = {name: peer_found(scores[name], incidents, FALSE) for name in scores}
    print("  %-12s %7s %7s %10s %12s %12s %12s   (peers: found, by chance; %.1f a day in hindsight)" % (
        "fault", "found", "chance", "delay", *peers, FALSE))
    total = chance = 0
    for fault in FAULTS:
        delays = [first_in(runs[s][fault][0], *runs[s][fault][1][:2]) for s in sorted(runs)]
        luck = sum(first_in(runs[s]["none"][0], *runs[s][fault][1][:2]) is not None for s in runs)
        hits = [d for d in delays if d is not None]
        print("  %-12s %4d/%d %7d %10s %6d, %4d %6d, %4d %6d, %4d" % (
            (fault, len(hits), count, luck, span(float(np.median(hits)) + STEP if hits else None)) + tuple(
                n for found in peers.values() for n in found[fault])))
        total, chance = total + len(hits), chance + luck
    if SHOW:
        for seed in sorted(runs):
            show(seed, runs[seed])
    asked = MUST * count * len(FAULTS) / 84
    good = total >= asked and false <= FALSE
    mine = "compressors, faults found of %d, and " % (count * len(FAULTS))
    for name, words in (("regression", "a regression's in hindsight at 0.5 false a day"), ("lagged", "a regression's that knows the rows before")):
        table_rows.row(mine + words, total, sum(n[0] for n in peers[name].values()))
    table_rows.row("compressors, %d machines: false alerts a day" % count, round(false, 3), bar="<= %g" % FALSE)
    print("  found %d of %d (must: %.0f), by chance %d, at %.2f false a day (must: <= %.1f); peers: ewma %d (%d by chance), "
          "regression %d (%d), lagged %d (%d)" % ((total, count * len(FAULTS), asked, chance, false, FALSE) + tuple(
              sum(n[k] for n in peers[name].values()) for name in peers for k in (0, 1))), flush=True)
    return good
