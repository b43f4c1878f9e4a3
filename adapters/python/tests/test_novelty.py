"""Novelty and Monitor: scores and p-values, alerts within a budget, rules, limits, verdicts; equal
to `eval --alerts`.
"""
import io
import json
import math
import subprocess

import numpy as np
import pandas as pd
import pytest

from svmstream import Monitor, Novelty, errors
from svmstream.novelty import Alert, Evidence, Step

rng = np.random.default_rng(8)


def machine(n, start=0, fault=None):
    """Rows of a machine: temperature follows load. fault(i) changes a row."""
    for i in range(start, start + n):
        r = np.random.default_rng(i)
        load = 5 + 3 * math.sin(i / 40) + r.normal() * 0.2
        row = {
            "load": round(load, 4),
            "temp": round(40 + 3 * load + r.normal() * 0.5, 4),
            "vib": round(r.gamma(9.0, 0.1), 4),
        }
        if fault:
            fault(i, row)
        yield i, row


def test_novelty_orders_rows():
    model = Novelty()
    assert model.score_one({"load": 1}) == 0 and model.p_one({"load": 1}) == 1
    for _, row in machine(600):
        model.learn_one(row)
    normal = [model.score_one(row) for _, row in machine(200, 600)]
    far = [
        model.score_one({**row, "temp": row["temp"] + shift})
        for shift in (5, 20, 100)
        for _, row in machine(20, 600)
    ]
    assert np.median(far[:20]) > np.median(normal) and min(far[20:]) > max(normal[:100]) - 0.3
    assert np.mean([model.p_one(row) <= 0.1 for _, row in machine(200, 600)]) < 0.25
    assert (
        max(model.p_one({**row, "temp": row["temp"] + 100}) for _, row in machine(20, 600)) < 0.05
    )
    assert model.seen == 600 and model.columns == ["load", "temp", "vib"]


def test_step_gives_the_finding():
    model = Novelty()
    steps = [model.step(row) for _, row in machine(300)]
    assert all(isinstance(s, Step) and isinstance(s.evidence, Evidence) for s in steps)
    assert steps[0].p == 1 and steps[0].novelty == 0  # nothing is known
    assert steps[-1].p == steps[-1].evidence.p and 0 <= steps[-1].p <= 1
    assert {s.y for s in steps} == {None} and not any(s.learned for s in steps)
    strange = model.step({"load": 5, "temp": 500, "vib": 0.9})
    assert strange.novelty > 0.9 and strange.p < 0.05


def test_many_rows_are_their_rows():
    frame = pd.DataFrame([row for _, row in machine(300)])
    many, one = Novelty().learn_many(frame, ts=np.arange(300.0)), Novelty()
    for i, row in machine(300):
        one.learn_one(row, ts=float(i))
    assert many.fingerprint() == one.fingerprint()
    assert list(many.score_many(frame[:9])) == [one.score_one(r) for _, r in machine(9)]
    assert list(many.p_many(frame[:9])) == [one.p_one(r) for _, r in machine(9)]
    array = Novelty().learn_many(frame.to_numpy(), ts=np.arange(300.0))
    assert np.array_equal(
        array.score_many(frame.to_numpy(np.float32).astype(float)),
        array.score_many(frame.to_numpy(np.float32)),
    )


def test_it_claims_nothing_of_scikit_learn():
    for model in (Novelty(), Monitor()):
        assert (
            not hasattr(model, "_estimator_type")
            and not hasattr(model, "fit_predict")
            and not hasattr(model, "fit")
        )
    assert "no outlier detector of scikit-learn" in " ".join(Novelty.__doc__.split())


def hot(i, row):
    if 900 <= i < 960:
        row["temp"] += 40


def test_a_fault_is_reported_at_once_and_ends():
    received = []
    monitor = Monitor(budget="1/hour", on_alert=received.append)
    steps = {}
    for i, row in machine(1500, fault=hot):
        steps[i] = monitor.step(row, ts=1.7e9 + 60.0 * i)
    assert monitor.alerts == received == [a for s in steps.values() for a in s.alerts]
    found = [
        a
        for i, s in steps.items()
        for a in s.alerts
        if 900 <= i < 910 and a.state in ("open", "update")
    ]
    assert (
        found
        and found[0].sensors[0] == "temp"
        and "temp" in found[0].text
        and found[0].severity != "notice"
    )
    alert = found[0]
    assert isinstance(alert, Alert) and alert.kind in ("novelty", "rule")
    assert alert.since <= alert.ts and alert.ts == alert.event["ts"]
    assert any(a.state == "close" and a.alert == alert.alert for a in received)
    assert [a.number for a in received] == sorted({a.number for a in received})
    assert json.loads(alert.json) == alert.event and alert.event["state"] == alert.state
    quiet = [a for i, s in steps.items() for a in s.alerts if a.state == "open" and i < 900]
    assert len(quiet) <= 20  # in 15 hours, of a stream that it had never seen


def test_limits_rules_and_context():
    monitor = Monitor(limits={"temp": (30, 70), "vib": (None, 5)}, rules=(), interval=60)
    for _, row in machine(120):
        assert monitor.step(row).alerts == ()
    alerts = monitor.step({"load": 5, "temp": 71, "vib": 5.5}).alerts
    assert [(a.kind, a.rule, a.state) for a in alerts] == [
        ("rule", "limits", "open")
    ] and "temp" in alerts[0].text
    stuck = Monitor(rules="stuck", interval=60, budget="none")
    found = [
        a
        for i, row in machine(900)
        for a in stuck.step({**row, "vib": 1.0 if i > 300 else row["vib"]}).alerts
    ]
    assert [a.rule for a in found if a.rule] and {
        a.sensors for a in found if a.rule == "stuck"
    } >= {("vib",)}
    assert Monitor(rules=()).setting("alert.rules") == "none"
    watched = Monitor(context=["load"], interval=60)
    for _, row in machine(50):
        watched.learn_one(row)
    assert watched.setting("context") == "load" and watched.score_one(row) == watched.score_one(row)


def test_rows_without_time_follow_the_interval():
    """Deterministic: nothing of the machine's clock enters."""
    prints = set()
    for _ in range(2):
        monitor = Monitor(interval=60)
        for _, row in machine(200):
            monitor.learn_one(row)
        prints.add(monitor.fingerprint())
    assert len(prints) == 1


def test_verdicts():
    monitor = Monitor(budget="1/hour", interval=60, rules=())
    for _, row in machine(1100, fault=hot):
        monitor.learn_one(row)
    novel = [a for a in monitor.alerts if a.kind == "novelty" and a.state == "open"]
    assert novel
    monitor.verdict(novel[-1], True, by="Ada")
    assert monitor.figures()["alerts_true"] == 1
    before = monitor.fingerprint()
    for wrong in (0, 10**6, -1, "x", 1.5, None):
        with pytest.raises(errors.SvmstreamError):
            monitor.verdict(wrong, False)
    assert monitor.fingerprint() == before


def test_alerts_are_those_of_eval(program, tmp_path):
    """The program over the same rows as CSV: the same events, each key of each."""
    rows = list(machine(1200, fault=hot))
    lines = ["ts,load,temp,vib"] + [
        "%d,%r,%r,%r" % (1_700_000_000 + 60 * i, r["load"], r["temp"], r["vib"]) for i, r in rows
    ]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    out = subprocess.run(
        [
            program,
            "eval",
            tmp_path / "rows.csv",
            "--method",
            "none",
            "--alerts",
            "--json",
            "--ts",
            "ts",
            "--alert.budget",
            "1/hour",
        ],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    ).stdout
    theirs = json.loads(out)["events"]
    monitor = Monitor(budget="1/hour")
    for i, row in rows:
        monitor.learn_one(row, ts=1_700_000_000 + 60 * i)
    states = {event["state"] for event in theirs}
    ours = [a.event for a in monitor.alerts if a.state in states]
    assert len(theirs) == len(ours) > 10
    assert {"text", "since", "alert", "kind", "detector"} <= set(theirs[0])
    for one, other in zip(ours, theirs):
        given = {**one, "detector": one.get("detector") or one.get("rule")}
        assert {key: given.get(key) for key in other} == other


def test_on_alert_that_fails_loses_no_row():
    def fail(alert):
        raise RuntimeError(alert.text)

    monitor = Monitor(limits={"a": (0, 1)}, on_alert=fail, interval=60)
    monitor.learn_one({"a": 0.5})
    with pytest.raises(RuntimeError, match="a"):
        monitor.learn_one({"a": 2.0})
    assert monitor.seen == 2 and len(monitor.alerts) == 1
    copy = Monitor.from_bytes(monitor.to_bytes())
    assert copy.on_alert is None and [a.event for a in copy.alerts] == [
        a.event for a in monitor.alerts
    ]


def test_an_object_of_python_in_the_callback():
    """The callback may use the monitor."""
    seen = []
    monitor = Monitor(
        limits={"a": (0, 1)},
        interval=60,
        on_alert=lambda alert: seen.append(monitor.score_one({"a": 1})),
    )
    for i in range(150):
        monitor.learn_one({"a": i % 7 / 7})
    monitor.learn_one({"a": 5})
    assert len(seen) == len(monitor.alerts) >= 1
