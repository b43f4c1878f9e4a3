"""A benchmark's rows in the table of `make bench`, and the form in which it runs; as result.h, for those in Python.

BENCH_FORM is quick (CI: does it run, are the results right), whole (the default) or full. A bar applies to the ratio, or to our figure where
there is no ratio. An exact bar holds on a busy machine, too: the program fails without it. The others are times, not judged in the quick form.
"""
import os
import sys

FORM = os.environ.get("BENCH_FORM") or "whole"
wrong = 0


def pick(quick, whole, full=None):
    return quick if FORM == "quick" else full if FORM == "full" and full is not None else whole


def figure(value, unit=""):
    if value is None:
        return ""
    if isinstance(value, str):
        text = value
    elif abs(value) >= 1e6:
        text = "%.3g M" % (value / 1e6)
    elif abs(value) >= 10000:
        text = "{:,.0f}".format(value)
    else:
        text = "%.4g" % value
    return text + (" " + unit if unit else "")


def within(value, bar):
    """Bars are written with six digits, so the value is compared with as many: 5 s is 0.0833333 min."""
    sign, bound = bar.split()
    value = float("%g" % value)
    return {"<=": value <= float(bound), ">=": value >= float(bound), "<": value < float(bound), ">": value > float(bound), "=": value == float(bound)}[sign]


def row(name, ours, peer=None, ratio=None, bar="", unit="", exact=False):
    """Prints a row and returns whether its bar holds (without a bar: True)."""
    global wrong
    good, verdict = True, ""
    if bar and (exact or FORM != "quick"):
        good = within(ours if ratio is None else ratio, bar)
        verdict = "ok" if good else "WRONG" if exact else "missed"
        wrong += exact and not good
    print("= %s | %s | %s | %s | %s | %s" % (name, figure(ours, unit), figure(peer, unit), "" if ratio is None else "%.3g" % ratio, bar, verdict))
    sys.stdout.flush()
    return good


def end():
    """The exit code of the program."""
    return 1 if wrong else 0


if __name__ == "__main__":  # for those in shell: results.py NAME OURS PEER RATIO BAR UNIT [exact]
    words = sys.argv[1:] + [""] * 6
    row(words[0], float(words[1]), float(words[2]) if words[2] else None, float(words[3]) if words[3] else None, words[4], words[5], words[6] == "exact")
    sys.exit(end())
