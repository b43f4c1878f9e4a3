"""Part `budget`: twelve kinds of streams that move without a fault, at three budgets: what is kept of them, and what is used.

Three sensors a stream. A cell is a kind x a budget; its streams of several seeds are cut into periods of the budget, after a
beginning that is not counted (what the past is too short for):

1/week   a row every 10 minutes, 6 streams of 20 weeks, the first 3 not counted: 102 periods
1/day    a row a minute, 6 streams of 21 days, the first 4 not counted: 102
6/day    a row a minute, 4 streams of 15 days, the first 2 not counted: 52

Realised: alerts of the kinds that share the budget (novelty, quality) that open in the periods, a period, over the budget. A period
is above the bound where it has more alerts than a Poisson number of the budget has in 99 of 100 periods (4 at 1, 12 at 6).

walk      random walks                                ar90, ar99  autoregressive, of 0.9 and 0.99 a row
season    a day's cycle, a slow wave and weather      shapes      a day's cycle whose shape changes from day to day
regimes   levels that change every few hours          clusters    deviations that come in clusters (a slow log variance)
trend     drifts for days, turns                      onoff       an on/off machine with hysteresis, and what follows it
bursts    bursts on a quiet base                      tails       Student t of 3, correlated over rows
batches   recipes of other lengths and levels
"""
import numpy as np

import alert_runs
import machines
import results as table_rows
from alert_runs import DAY, SHOW, opened

BUDGETS = {"1/week": (1, 7 * DAY, 600, 6, 20, 3), "1/day": (1, DAY, 60, 6, 21, 4), "6/day": (6, DAY, 60, 4, 15, 2)}
KINDS_COUNTED = ("novelty", "quality")
BOUND = {1: 4, 6: 12}  # Poisson: P(N <= bound) >= 0.99
LOW, HIGH, CELLS, ABOVE = 0.6, 0.95, 30, 0.02


def ar(random, n, keep, count=3):
    """n x count autoregressive columns of deviation 1."""
    drive = random.standard_normal((n, count)) * np.sqrt(1 - keep * keep)
    drive[0] /= np.sqrt(1 - keep * keep)
    return np.column_stack([linear(drive[:, j], keep) for j in range(count)])


def linear(drive, keep):
    """y[t] = keep y[t-1] + drive[t]."""
    out, y = [], 0.0
    for v in drive.tolist():
        y = keep * y + v
        out.append(y)
    return np.array(out)


def held(random, n, mean, draw):
    starts = np.cumsum(1 + random.geometric(1 / mean, int(3 * n / mean) + 20))
    return draw(len(starts) + 1)[np.searchsorted(starts, np.arange(n), side="right")]


def mixed(random, base, noise):
    """Three sensors that follow a base, each with a noise of its own."""
    return np.column_stack([base, 0.6 * base, -0.4 * base]) + noise * random.standard_normal((len(base), 3))


def walk(random, n, day):
    return np.cumsum(random.standard_normal((n, 3)), axis=0)


def season(random, n, day):
    turn = 2 * np.pi * np.arange(n) / day
    base = 3 * np.sin(turn + random.uniform(0, 6)) + 2 * np.sin(turn / 30 + random.uniform(0, 6))
    return mixed(random, base + ar(random, n, np.exp(-1 / (2 * day)), 1)[:, 0], 0.3)


def shapes(random, n, day):
    hour, days = np.arange(n) % day / day, np.arange(n) // day
    rise = 0.3 + 0.05 * np.cumsum(random.standard_normal(days[-1] + 1)).clip(-3, 3)[days]
    width, height = 0.15 + 0.1 * random.random(days[-1] + 1)[days], 1 + 0.2 * random.standard_normal(days[-1] + 1)[days]
    return mixed(random, 5 * height * np.exp(-((hour - rise) / width) ** 2), 0.3)


def regimes(random, n, day):
    return mixed(random, held(random, n, day / 5, lambda m: random.choice([0.0, 4.0, 5.0, 9.0], m)), 0.5)


def clusters(random, n, day):
    return ar(random, n, 0.5) * np.exp(0.6 * ar(random, n, np.exp(-1 / (day / 12)), 1))


def trend(random, n, day):
    return mixed(random, np.cumsum(held(random, n, 4 * day, lambda m: random.normal(0, 4 / day, m))), 0.4)


def onoff(random, n, day):
    level, on, runs = 0.5, 0.0, np.empty(n)
    draw = (0.03 + 0.02 * np.sin(2 * np.pi * np.arange(n) / day) + 0.01 * ar(random, n, 0.98, 1)[:, 0]).clip(0.005).tolist()
    for i in range(n):
        on = 1.0 if level < 0.2 or (on and level < 0.8) else 0.0
        level += 0.09 * on - draw[i]
        runs[i] = on
    warm = machines.filtered(runs, 0.95)
    return np.column_stack([10 * runs, 20 + 30 * warm, 2 * runs * (1 + 0.2 * warm)]) + random.standard_normal((n, 3)) * [0.2, 0.3, 0.05]


def bursts(random, n, day):
    kicks = random.exponential(4, n) * (random.random(n) < 12 / day)
    return mixed(random, linear(kicks, 0.9) + ar(random, n, 0.9, 1)[:, 0], 0.2)


def tails(random, n, day):
    return np.column_stack([linear(random.standard_t(3, n), 0.7) for _ in range(3)])


def batches(random, n, day):
    base, at = np.zeros(n), 0
    while at < n:
        length = int(random.uniform(0.03, 0.15) * day)
        phase = np.linspace(0, 1, length)[:n - at]
        level = random.choice([3, 5, 6]) * random.uniform(0.95, 1.05)
        base[at:at + length] = level * np.clip(np.minimum(phase / 0.2, (1 - phase) / 0.1), 0, 1)
        at += length + int(random.exponential(0.02) * day)
    return mixed(random, base, 0.15)


STREAMS = {"walk": walk, "ar90": lambda r, n, day: ar(r, n, 0.9), "ar99": lambda r, n, day: ar(r, n, 0.99), "season": season,
           "shapes": shapes, "regimes": regimes, "clusters": clusters, "trend": trend, "onoff": onoff, "bursts": bursts,
           "tails": tails, "batches": batches}


def stream(kind, seed, budget):
    """Columns of one stream."""
    _, period, step, _, periods, _ = BUDGETS[budget]
    n = periods * period // step
    random = np.random.default_rng([seed, list(STREAMS).index(kind), list(BUDGETS).index(budget)])
    x = STREAMS[kind](random, n, DAY // step)
    return dict({"ts": machines.BEGIN + step * np.arange(n)}, a=x[:, 0], b=x[:, 1], c=x[:, 2])


def run(job):
    """Alerts that opened in each counted period of one stream."""
    kind, budget, seed = job
    _, period, _, _, periods, skip = BUDGETS[budget]
    events = [e for e in opened(alert_runs.play_columns(stream(kind, seed, budget), ["alert.budget=" + budget]))
              if e.kind in KINDS_COUNTED]
    when = ((np.array([e.time for e in events]) - machines.BEGIN) // period).astype(int)
    return job, np.bincount(when, minlength=periods)[skip:], alert_runs.by_kind([e for e, at in zip(events, when) if at >= skip])


def budget(pool):
    streams = {name: alert_runs.seeds(BUDGETS[name][3]) for name in BUDGETS}
    jobs = [(kind, name, seed) for kind in STREAMS for name in BUDGETS for seed in streams[name]]
    results = {job: (counts, text) for job, counts, text in pool.imap_unordered(run, jobs)}
    print("\nBudgets, %d moving kinds: alerts realised over the budget (periods above its 99 %% Poisson bound)\n  %-10s %s" % (
        len(STREAMS), "kind", " ".join("%14s" % ("%s" % name) for name in BUDGETS)))
    within = used = above = periods = 0
    shares = {name: [] for name in BUDGETS}
    for kind in STREAMS:
        cells = []
        for name, (limit, *_) in BUDGETS.items():
            counts = np.concatenate([results[kind, name, seed][0] for seed in streams[name]])
            share, many = counts.mean() / limit, int((counts > BOUND[limit]).sum())
            shares[name].append(share)
            within, used = within + (share <= 1), used + (LOW <= share <= HIGH)
            above, periods = above + many, periods + len(counts)
            cells.append("%8.2f (%3d)" % (share, many))
        print("  %-10s %s" % (kind, "  ".join(cells)), flush=True)
        if SHOW:
            for name in BUDGETS:
                print("      %s: %s" % (name, "; ".join(results[kind, name, seed][1] for seed in streams[name])))
    count = len(STREAMS) * len(BUDGETS)
    print("  %-10s %s" % ("mean", "  ".join("%8.2f      " % np.mean(s) for s in shares.values())))
    print("  within the budget %d of %d (must: all), %.2f to %.2f of it used in %d (must: %d), periods above the bound %.1f %% of %d "
          "(must: <= %.0f %%)" % (within, count, LOW, HIGH, used, CELLS, 100 * above / periods, periods, 100 * ABOVE), flush=True)
    table_rows.row("moving streams: cells within alert.budget, of %d" % count, within, bar=">= %d" % count)
    table_rows.row("moving streams: cells that use %d to %d %% of it, of %d" % (100 * LOW, 100 * HIGH, count), used, bar=">= %d" % CELLS)
    table_rows.row("moving streams: periods above the 99 %% bound, of %d" % periods, above, bar="<= %.0f" % (ABOVE * periods))
    return within == count and used >= CELLS and above <= ABOVE * periods
