"""Random walks for tests/oracle: settings of a process, and what it is sent. The same seed gives the same bytes.

Every sample has a time, and the clock of arrival (`at`) goes along with it.
"""
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "recorded"))
from samples import BEGIN, NAMES, NAN, QUICK_NOVELTY, Numbered, Samples, ask, put  # noqa: E402

import msgpack  # noqa: E402

COLUMNS = NAMES[:5]
OF_ALSVM = {"refit", "window", "window.seconds", "C", "forget", "scale", "drift.action"}  # of these method auto has its own
STEP = 0.25  # seconds from sample to sample


class Stream(Samples):
    """Samples as they are, and some that have words, names in any order, missing values, columns that appear, keys; time that jumps."""

    def __init__(self, seed, keys=(), target="class", new=0.004, **more):
        super().__init__(seed, **more)
        self.keys, self.key_of, self.target, self.new = list(keys), {}, target, new
        self.late, self.extra = 0.0, 0

    def now(self):
        return BEGIN + STEP * self.made + self.late

    def sample(self, **keys):
        r, i, now = self.random, self.made, self.now()
        s = super().sample(ts=now, **keys)
        if self.form == "listed":
            order = r.sample(range(self.d), self.d) if r.random() < 0.3 else list(range(self.d))
            s["x"], s["columns"] = [s["x"][j] for j in order], [COLUMNS[j] for j in order]
        if self.target == "number" and "y" in s:
            s["y"] = round(self.level(s["x"]) + r.gauss(0, 0.3), 3)
        if self.keys:
            s["key"] = self.key_of[i] = self.key()
            if s["key"] == "":
                del s["key"]
        return s

    def key(self):
        """A few come often."""
        r = self.random
        return self.keys[min(r.randrange(len(self.keys)), r.randrange(len(self.keys)))]

    def level(self, x):
        values = [v for v in (x.values() if isinstance(x, dict) else x if isinstance(x, list) else []) if isinstance(v, float)]
        return sum(values[:2]) - sum(values[2:3])

    def shaped(self, x):
        r = self.random
        if self.form == "words":
            row = dict(zip(COLUMNS, x))
            row["shift"] = r.choice(["day", "night", "late"])
            row["unit"] = "u%d" % r.randrange(2 + self.made // 60)
            self.extra += r.random() < self.new
            for j in range(min(self.extra, 4)):
                row["extra%d" % j] = round(r.gauss(0, 1), 3)
            for name in list(row):
                if r.random() < 0.03:
                    row[name] = None
            return row
        return x if self.form == "listed" else super().shaped(x)


class Messages(Numbered):
    """Operations have the key of their sample; some messages are JSON."""

    def __init__(self, samples, seed, json=0.1, **more):
        super().__init__(samples, **more)
        self.random, self.json = random.Random(seed), json

    def message(self, elements):
        for e in elements:
            if e.get("op") in ("label", "forget") and self.samples.keys and self.random.random() < 0.95:
                e["key"] = self.samples.key_of.get(e.get("id"), "nobody")
        move = super().message(elements)
        if self.random.random() < self.json:
            try:
                self.sent[-1] = json.dumps(elements if len(elements) > 1 else elements[0]).encode()
            except TypeError:  # packed numbers
                return move
            return put(self.sent[-1])
        return move


def method_of(r, keyed):
    return r.choice(["alsvm", "alsvm", "falsvm", "auto", "none"] if keyed else ["alsvm", "falsvm", "auto", "auto", "none"])


def novelty_of(r, form, method):
    s = {"novelty": r.choice(["none", "fosvm1", "fosvm1", "fosvm2"])}
    if method == "none":
        s["novelty"] = "fosvm1"
    if s["novelty"] != "none":
        s.update(QUICK_NOVELTY)
        s.update({"novelty.kernel": r.choice(["laplacian", "laplacian", "rbf", "polynomial"]), "novelty.gamma": r.choice(["auto", "median", "scale", "0.2"]),
                  "novelty.learn": r.choice(["normal", "normal", "all", "labelled", "persistent"]), "novelty.persist": 10})
        if r.random() < 0.3:
            s.update({"novelty.lags": r.randint(2, 4), "novelty.differences": r.choice(["no", "yes"])})
        how = r.random()
        if how < 0.5:  # as it is by default, but for the number
            for key in ("alert.p", "alert.clear", "alert.cooldown"):
                del s[key]
            s["alert.budget"] = r.choice(["1000/hour", "200/hour", "5000/day"])
            if form in ("words", "listed") and r.random() < 0.5:
                s["context"] = r.choice([COLUMNS[0], COLUMNS[0] + "," + COLUMNS[1]] + (["shift"] if form == "words" else []))
        elif how < 0.65:
            s.update({"alert.fdr": 0.5, "alert.clear": 0.6})
    s["alert.rules"] = r.choice(["none", "beyond,stuck,absent", "beyond,stuck,absent,rate"])
    if form in ("words", "listed") and r.random() < 0.5:
        s["limits"] = "%s:-4..4,%s:..6" % (COLUMNS[0], COLUMNS[2])
    s["alert.group"] = r.choice([0, 60, 60])
    return s


def learner_of(r, form, task, method):
    s = {"task": task, "method": method, "refit": "none", "window": r.choice([8, 30, 60, 200]), "C": r.choice([0.1, 1, 1, 10]), "scale": r.choice(["standard", "standard", "none"]),
         "publish.every": r.choice([5, 20, 50]), "missing": r.choice(["auto", "mean", "zero", "carry", "drop"] if form in ("words", "named") else ["auto", "refuse", "carry"]),
         "labels.ttl": r.choice([3600, 20]), "labels.max": r.choice([10000, 12]), "drift.rate": r.choice([0, 0.0001, 0.01])}
    for chance, key, values in ((0.2, "forget", [0.98, 0.995]), (0.15, "window.seconds", [5, 20]), (0.2, "drift.action", ["shrink"]), (0.2, "scores", [3, "all"]),
                                (0.2, "columns.new", ["refuse"]), (0.2, "seed", [7])):
        if r.random() < chance:
            s[key] = r.choice(values)
    if task == "classify" and r.random() < 0.2:
        s["class.weight"] = r.choice(["balanced", "0=2"])
    if task == "classify" and r.random() < 0.2:
        s["decision.cost"] = r.choice(["0=3", "0>1=4"])
    if method == "auto":
        s["score.members"] = r.choice(["no", "yes"])
        s["serve"] = r.choice(["online", "online", "linear"])
    if form == "words":
        s["categories.max"] = r.choice([100, 3])
        s["hash"] = r.choice([0, 0, 2])
        if r.random() < 0.3:
            s.update({"calendar": r.choice(["day", "day,week"]), "zone": r.choice(["UTC", "Europe/Berlin"])})
    if method == "auto":
        s = {key: value for key, value in s.items() if key not in OF_ALSVM}
    elif method == "none":
        s.pop("decision.cost", None)
    elif task == "regress":
        s["method"] = "alsvm"
    return s


def keys_of(r, s, threads):
    """Settings of keys, and the names that come."""
    count = r.choice([1, 3, 8, 40, 40])
    names = ["m%d" % i for i in range(count)] + r.choice([[], [""], ["mixer 7", "ü/%"], [7, "007"]])
    r.shuffle(names)
    s.update({"key": r.choice(["key", "machine"]), "threads": threads, "keys.memory": r.choice([1, 2, 4, 8, 1000])})
    if s["method"] in ("alsvm", "falsvm") and s.get("forget", 1) == 1 and "class.weight" not in s:
        s["key.prior"] = r.choice([0, 10, 10])
    for chance, key, values in ((0.3, "keys.idle", [5, 60]), (0.15, "keys.max", [6, 20]), (0.1, "keys.quota", [4])):
        if r.random() < chance:
            s[key] = r.choice(values)
    return names


CHANGES = {"window": [5, 20, 60, 300], "C": [0.05, 1, 4], "method": ["alsvm", "falsvm", "auto", "none"], "novelty": ["none", "fosvm1", "fosvm2"], "forget": [0.99, 1], "scale": ["none", "standard"],
           "class.weight": ["none", "balanced"], "alert.p": [0.02, 0.1], "alert.clear": [0.3], "alert.cooldown": [0, 5], "alert.group": [0, 30], "publish.every": [3, 30], "scores": ["all", "none", 2],
           "decision.cost": ["none", "0=2"], "interval": [0, 0.8], "drift.rate": [0, 0.001], "serve": ["online", "best", "linear"], "score.members": ["yes", "no"], "window.seconds": [0, 12],
           "novelty.max": [10, 30], "context": ["", COLUMNS[1]], "keys.idle": [0, 30], "drift.action": ["none", "shrink"], "key.prior": [0, 10], "bad.name": [1], "max.features": [2000], "outlier": ["clip", "refuse", "take"],
           "novelty.kernel": ["rbf", "laplacian"], "alert.budget": ["none", "500/hour"], "limits": ["", COLUMNS[0] + ":-2..2"]}


class Walk:
    """settings, moves"""

    def __init__(self, seed, threads=None, turns=100, quick=False):
        self.r = r = random.Random("walk %d %r" % (seed, threads))
        self.keyed = threads is not None
        form = r.choice(["array", "dense", "sparse", "named", "words", "words", "listed"])
        task = r.choice(["classify", "classify", "classify", "regress"])
        method = method_of(r, self.keyed)
        s = {"in.mode": "router", "publish.seconds": 0, **learner_of(r, form, task, method), **novelty_of(r, form, method)}
        s.update({"delivery": r.choice(["at-least-once", "durable", "exactly-once"]), "checkpoint.seconds": r.choice([0, 0, 0.002, 0.02]), "journal.keep": r.choice(["all", "needed"]),
                  "journal.segment": r.choice([4096, 65536, 1 << 24]), "state.dir": "state"})
        names = keys_of(r, s, threads) if self.keyed else []
        self.settings, self.names = s, names
        if not self.keyed:
            s["threads"] = r.choice([0, 1])
        self.samples = Stream(r.randrange(1 << 30), keys=names, target="number" if task == "regress" else "class", form=form, d=r.choice([2, 4, 5]) if form != "words" else 5,
                              classes=r.choice([(0, 1), ("ok", "bad"), (0, 1, 2)]), unlabelled=r.choice([0.1, 0.4]), burst=r.choice([0.005, 0.03]))
        if form == "listed":
            self.samples.d = 5
            self.samples.drift = [0.0] * 5
        self.messages = Messages(self.samples, r.randrange(1 << 30), sources=("a", "b"), batch=r.choice([4, 16, 64]), json=r.choice([0, 0.2]))
        self.saves = 0
        self.moves = []
        self.walk(turns, 1 + (not quick) + r.randrange(2))

    def any_key(self):
        if not self.keyed or self.r.random() < 0.2:
            return {}
        return {"key": self.r.choice(self.names + ["nobody"]) if self.r.random() < 0.3 else self.samples.key()}

    def some_id(self):
        """A sample's id and its key."""
        i = max(0, self.samples.made - self.r.randint(1, 30))
        return {"id": i, **({"key": self.samples.key_of.get(i, "")} if self.keyed else {})}

    def request(self):
        """Something that is asked, or changed."""
        r, key = self.r, self.any_key()
        pick = r.randrange(24)
        if pick < 5:
            return [ask(r.choice(["status", "model", "bank", "columns", "config"]), **key)]
        if pick < 7:
            sample = self.samples.sample()
            sample.pop("key", None)
            return [["at", self.samples.now()], ask("score", sample={"x": sample["x"], **({"columns": sample["columns"]} if "columns" in sample else {})}, **key)]
        if pick < 9:
            return [ask(r.choice(["forget", "label"]), **self.some_id(), **{"y": r.choice(self.samples.classes)})]
        if pick < 13:
            names = r.sample(sorted(CHANGES), r.choice([1, 1, 2]))
            changed = {n: r.choice(CHANGES[n]) for n in names}
            if changed.get("method", "auto") != "auto":  # one that was auto has no setting refit
                changed["refit"] = "none"
            return [ask("config", set=changed)]
        if pick < 15:
            return [ask("alert", alert=r.randint(1, 6), verdict=r.random() < 0.5, **key)]
        if pick < 16:
            return [ask(r.choice(["tune", "model"]), **key, **({"loo": True} if r.random() < 0.5 else {}))]
        if pick < 17:
            return [ask("publish", **key)]
        if pick < 18:
            return [ask("prune", **key)]
        if pick < 19:
            return [ask("reset", yes=True, **key)] if r.random() < 0.4 else [ask("reset", **key)]
        if pick < 20:
            self.saves += 1
            return [["save"]]
        if pick < 21 and self.saves and not self.keyed and self.settings["checkpoint.seconds"] == 0:  # else it may be gone
            return [["load", r.randrange(self.saves), r.choice([{}, {"relearn": True}, {"relearn": True, "without": "a"}])]]
        if pick < 22 and self.keyed:
            return [ask("drop", **key)]
        if pick < 23:
            topic = r.choice(["model", "bank"]) + "."
            return [["hear", topic + "default." + ("%s." % key["key"] if key and str(key["key"]).isalnum() else "")]]
        return [ask("keys", sort=r.choice(["quality", "age", "rows", "alerts", "name"]), limit=r.choice([3, 100]), **r.choice([{}, {"like": "m"}, {"prefix": "m1"}, {"open": True}, {"silent": 20}]))]

    def turn(self):
        r = self.r
        if r.random() < 0.04:
            self.samples.late += r.choice([8, 70, 900, 90000])
        moves = self.messages.turn()
        found = [["at", self.samples.now()]] + moves
        if r.random() < 0.3:
            found += self.request()
        return found

    def restart(self):
        """Settings with which the next process goes on."""
        r, s = self.r, {}
        for key, values in (("keys.memory", [1, 3, 50]),) if self.keyed else (("threads", [0, 1]),):
            if r.random() < 0.5:
                s[key] = r.choice(values)
        if r.random() < 0.2:
            s["publish.every"] = r.choice([4, 25])
        return s

    def walk(self, turns, lives):
        r = self.r
        for life in range(lives):
            for i in range(turns // lives):
                if self.settings["task"] == "classify" and r.random() < 1.5 / turns:
                    self.samples.classes.append(r.choice(["new", 9, True, "new%d" % i]))
                self.moves += self.turn()
            if life + 1 < lives:
                if r.random() < 0.3:
                    self.samples.late += r.choice([3, 400])
                self.moves.append(["again", r.choice(["kill", "kill", "term"]), self.restart()])
        self.moves += [["at", self.samples.now()], ask("status"), ask("model", **self.any_key()), ["end", r.choice(["term", "stop", "kill"])]]
        self.moves += [["folder", "state", "verify", "state"], ["folder", "replay", "state"]]
        if self.settings["journal.keep"] == "all":
            self.moves += [["folder", "replay", "--from-start", "--until", str(r.randint(5, 200)), "state"], ["folder", "replay", "--alerts", "state"]]
        if self.settings["journal.keep"] == "all" and self.settings["checkpoint.seconds"] == 0:  # other settings are those of the last checkpoint
            self.moves += [["folder", "replay", "-q", "--C", "0.5", "--window", "25", "state"]]
