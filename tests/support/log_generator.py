#!/usr/bin/python3
"""A log as a factory, a fleet of servers or a shop writes it, made from a known model.

A row comes about every 30 seconds, now and then after a gap of hours, in any order of machines: a time, three categories of 8, 3
and 4 values, three numbers of which about 2 % are missing, and whether it went well. The label follows a logistic model over the
categories and the numbers before any were lost, so the best accuracy that anybody could reach, the Bayes rate, is the mean of the
larger of the two true probabilities. The same arguments make the same bytes, on any machine: nothing but the generator of the
standard library is used.

    tests/support/log_generator.py --rows 50000 --seed 1 > log.csv              # the Bayes rate goes to standard error
    tests/support/log_generator.py --form jsonl --names shop --extra id,text    # the very same rows in another form

Names are those of one of three logs, which have nothing in common, or any others that are handed to Log.
"""
import argparse
import datetime
import json
import math
import random
import sys

DAY = 86400
BEGINS = 1704103200  # 2024-01-01T10:00:00Z
# time, three categories, three numbers, label; values of the categories; values of the label: it went well, it did not.
NAMES = {
    "factory": (["timestamp", "machine", "shift", "material", "temperature", "vibration", "load", "status"],
                [["press-%02d" % i for i in range(1, 9)], ["early", "late", "night"], ["steel", "brass", "copper", "zinc"]], ["ok", "fail"]),
    "servers": (["event_time", "host", "tier", "region", "latency_ms", "jitter", "queue", "outcome"],
                [["web%d.example" % i for i in range(1, 9)], ["gold", "silver", "bronze"], ["eu-west", "eu-north", "us-east", "ap-south"]],
                ["passed", "dropped"]),
    "shop": (["Zeit", "Filiale", "Kasse", "Zahlart", "Warteschlange", "Artikel je Korb", "Umsatz", "Ergebnis"],
             [["Köln", "Bonn", "Mainz", "Trier", "Ulm", "Jena", "Gera", "Kiel"], ["A", "B", "C"], ["bar", "Karte", "Gutschein", "Rechnung"]],
             ["gut", "schlecht"]),
}
EXTRAS = ("row", "constant", "id", "text")


class Log:
    """Rows of one log: `rows` is a list of dicts in the order of `columns`; None is a missing value. bayes: the best accuracy."""

    def __init__(self, rows=50000, seed=1, names="factory", columns=None, values=None, labels=None, label=None, place=-1, extra=(), missing=0.02):
        of = NAMES[names]
        self.columns, self.values, self.labels = list(columns or of[0]), values or of[1], list(labels or of[2])
        if label:
            self.columns[-1] = label
        self.time, self.categories, self.numbers, self.label = self.columns[0], self.columns[1:4], self.columns[4:7], self.columns[7]
        self.extra, self.missing = list(extra), missing
        order = self.columns[:-1] + self.extra
        order.insert(place if place >= 0 else len(order) + 1 + place, self.label)
        self.columns = order
        self.random = random.Random("log %d" % seed)
        self.effects = [[self.random.gauss(0, spread) for _ in v] for v, spread in zip(self.values, (1.7, 0.8, 1.2))]
        self.bayes, self.rows = 0.0, []
        at = float(BEGINS)
        for i in range(rows):
            at += self.random.expovariate(1 / 30) + (self.random.uniform(1, 6) * 3600 if self.random.random() < 0.0005 else 0)
            self.rows.append(self.row(i, int(at)))
        self.bayes /= max(1, rows)

    def row(self, i, at):
        r = self.random
        chosen = [min(int(len(v) * r.random() ** skew), len(v) - 1) for v, skew in zip(self.values, (1.3, 1, 1.6))]
        numbers = [20 + 8 * math.sin(2 * math.pi * (at % DAY) / DAY) + r.gauss(0, 2), math.exp(r.gauss(0, 0.4)), r.uniform(0, 100)]
        score = 1.2 + sum(e[k] for e, k in zip(self.effects, chosen)) - 0.16 * (numbers[0] - 20) - 1.9 * (numbers[1] - 1) - 0.03 * (numbers[2] - 50)
        likely = 1 / (1 + math.exp(-score))
        self.bayes += max(likely, 1 - likely)
        row = {self.time: datetime.datetime.fromtimestamp(at, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")}
        row.update((name, v[k]) for name, v, k in zip(self.categories, self.values, chosen))
        row.update((name, None if r.random() < self.missing else round(x, 3)) for name, x in zip(self.numbers, numbers))
        row[self.label] = self.labels[0 if r.random() < likely else 1]
        row.update((name, self.other(name, i)) for name in self.extra)
        return {name: row[name] for name in self.columns}

    def other(self, name, i):
        """A column that says nothing of the label."""
        of = random.Random("%s %d" % (name, i))
        if name == "row":
            return i + 1
        if name == "constant":
            return "v2.1"
        if name == "id":
            return "%016x" % of.getrandbits(64)
        return " ".join(of.choice(("the", "belt", "ran", "slowly, then", 'said "stop"', "again", "nobody", "came")) for _ in range(8)) + " %d" % i

    # ---- the same rows in other forms

    def cell(self, value, delimiter, na):
        if value is None:
            return na
        text = value if isinstance(value, str) else repr(value)
        return '"' + text.replace('"', '""') + '"' if any(c in text for c in (delimiter, '"', "\n")) else text

    def csv(self, delimiter=",", na="NA", columns=None, header=True):
        columns = columns or self.columns
        lines = [delimiter.join(self.cell(c, delimiter, na) for c in columns)] if header else []
        lines += [delimiter.join(self.cell(row[c], delimiter, na) for c in columns) for row in self.rows]
        return "\n".join(lines) + "\n"

    def jsonl(self, columns=None):
        """null is a missing value."""
        return "".join(json.dumps({c: row[c] for c in columns or self.columns}, ensure_ascii=False) + "\n" for row in self.rows)

    def features(self):
        """Names of the features in the order in which the rows name them: columns in order, a value after those seen before it."""
        found = []
        for row in self.rows:
            for c in self.columns:
                name = "%s=%s" % (c, row[c]) if c in self.categories else c
                if (c in self.categories or c in self.numbers) and name not in found:
                    found.append(name)
        return found

    def onehot(self, features=None, na="NA"):
        """The columns that the words become, made by hand: CSV of these features and the label."""
        features = features or self.features()
        split = [tuple(f.split("=", 1)) if f.split("=", 1)[0] in self.categories else (f, None) for f in features]
        lines = [",".join(self.cell(c, ",", na) for c in features + [self.label])]
        for row in self.rows:
            lines.append(",".join(self.cell(row[c] if v is None else int(row[c] == v), ",", na) for c, v in split) + "," + str(row[self.label]))
        return "\n".join(lines) + "\n"

    def unscaled(self):
        """Of the features those that are one value of a category, as the setting `unscaled` takes them."""
        return ",".join(f for f in self.features() if f.split("=", 1)[0] in self.categories)

    def maps(self):
        """Samples as a producer of msgpack or JSON sends them."""
        known = [c for c in self.columns if c in self.categories or c in self.numbers]
        return [{"x": {c: row[c] for c in known}, "y": row[self.label]} for row in self.rows]

    def vw(self, na="NA"):
        """Vowpal Wabbit's text: a word is a bare feature."""
        known = [c for c in self.columns if c in self.categories or c in self.numbers]
        cell = lambda c, v: "%s=%s" % (c, v) if c in self.categories else "%s:%s" % (c, na if v is None else repr(v))
        return "".join("%s | %s\n" % (row[self.label], " ".join(cell(c, row[c]) for c in known)) for row in self.rows)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rows", type=int, default=50000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--names", choices=sorted(NAMES), default="factory")
    p.add_argument("--form", choices=("csv", "jsonl", "onehot", "vw", "numbers"), default="csv", help="numbers: CSV without the categories")
    p.add_argument("--delimiter", default=",", help="of csv")
    p.add_argument("--label", help="another name of the label")
    p.add_argument("--labels", help="its two values, separated by a comma")
    p.add_argument("--place", type=int, default=-1, help="column of the label, from 0; -1 = the last")
    p.add_argument("--extra", default="", help="columns besides, separated by commas: " + ", ".join(EXTRAS))
    a = p.parse_args()
    log = Log(a.rows, a.seed, a.names, label=a.label, labels=a.labels.split(",") if a.labels else None, place=a.place, extra=[e for e in a.extra.split(",") if e])
    forms = {"csv": lambda: log.csv(a.delimiter), "jsonl": log.jsonl, "onehot": log.onehot, "vw": log.vw,
             "numbers": lambda: log.csv(a.delimiter, columns=[c for c in log.columns if c not in log.categories])}
    sys.stdout.write(forms[a.form]())
    sys.stderr.write("bayes %.4f\n" % log.bayes)
    if a.form == "onehot":
        sys.stderr.write("unscaled %s\n" % log.unscaled())


if __name__ == "__main__":
    main()
