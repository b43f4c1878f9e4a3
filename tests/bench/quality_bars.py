"""What is asked of the learner without settings, one row a measure: must, found, ok (`make bench ONLY=quality`).

A floor is a figure. Of tables that trees are good at, the floor is HGB's figure of the same run less NEAR; a regression may be
worse than HGB by a share. Probabilities are calibrated where there are rows enough to see it.
"""
FLOORS = {"elec2": 0.9281, "weather": 0.8113, "occupancy": 0.9938, "rialto": 0.8258, "kdd99-10pct": 0.9990,
          "covtype15k": 0.800, "magic": 0.866, "parity3": 0.90, "tree-changes": 0.90, "checkerboard-turns": 0.86, "agrawal-five": 0.88}
NEAR, BY_TREES = 0.005, ("a9a", "connect-4", "mushrooms", "rules", "steps", "crossed", "gated", "ring", "two-gaussians")
SHARE, REGRESSIONS = 0.05, ("demand",)
CALIBRATION, CALIBRATED_ROWS = 0.02, 2000


def measures(results, judged):
    """(measure, must, found, ok) of the sets that were measured; must is None where the peer was not run."""
    for name, floor in FLOORS.items():
        if name in results:
            found = results[name][4][judged][0]
            yield "accuracy " + name, ">= %.4f" % floor, "%.4f" % (found or 0), found is not None and found >= floor
    for name in BY_TREES:
        if name in results:
            found, peer = results[name][4][judged][0], results[name][4].get("HGB", (None,))[0]
            must = None if peer is None else ">= %.4f" % (peer - NEAR)
            yield "accuracy %s, HGB" % name, must, "%.4f" % (found or 0), must and found is not None and found >= peer - NEAR
    for name in REGRESSIONS:
        if name in results:
            found, peer = results[name][4][judged][0], results[name][4].get("HGB", (None,))[0]
            must = None if peer is None else "<= %.4g" % (peer * (1 + SHARE))
            yield "error %s, HGB" % name, must, "%.4g" % (found or 0), must and found is not None and found <= peer * (1 + SHARE)
    large = [(got[judged][2] or 0, name) for name, n, _, classes, got in results.values()
             if classes and n > CALIBRATED_ROWS and got[judged][0] is not None]
    if large:
        worst, name = max(large)
        yield "calibration error, worst: " + name, "< %.2f" % CALIBRATION, "%.4f" % worst, worst < CALIBRATION


def print_measures(rows):
    """Prints them and returns how many are not as asked; those without a peer are not judged."""
    missed = 0
    print("\n%-44s %12s %10s  %s" % ("measure", "must", "found", "ok"))
    for measure, must, found, ok in rows:
        missed += must is not None and not ok
        print("%-44s %12s %10s  %s" % (measure, must or "(no peer)", found, "-" if must is None else "ok" if ok else "NO"))
    return missed
