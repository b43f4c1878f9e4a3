"""What a stream returns of a row: Step with its Evidence and its Alerts."""
from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Tuple

from ._library import ffi


@dataclass(frozen=True)
class Evidence:
    """Novelty of a row. nan: not known, or the learner computes none (setting novelty); novelty 0
    and p 1: there is no model yet.

    novelty: 1 - membership, higher = more novel, about 0 at the border of what is normal. p:
    conformal p-value, the probability of a row at least as novel among normal ones. surprise:
    -log10 of the smallest p of all detectors. anomaly: of the row and its sensors together, 0 to 1.
    alarm: closeness to an alert; at 1 one may open.
    """

    novelty: float = math.nan
    p: float = math.nan
    surprise: float = math.nan
    anomaly: float = math.nan
    alarm: float = math.nan


@dataclass(frozen=True)
class Alert:
    """One alert event. `svmstream help protocol` lists the keys of `event`.

    number: of the event. alert: of the alert, which its open, updates and close share. kind:
    "novelty", "quality" or "rule". state: "open", "update" or "close". severity: "notice",
    "warning", "serious" or None. ts, since: seconds since 1970. p: of the row, nan if not known.
    text: one line for people. sensors: names of the columns that contribute most, first the
    largest. event: the whole event.
    """

    number: int
    alert: int
    kind: str
    state: str
    severity: Optional[str]
    rule: Optional[str]
    detector: Optional[str]
    ts: float
    since: float
    p: float
    text: str
    event: Dict[str, Any] = field(repr=False)

    @property
    def sensors(self) -> Tuple[str, ...]:
        """Names of the columns that contribute most, the first the largest."""
        return tuple(str(entry.get("feature")) for entry in self.event.get("top") or ())

    @property
    def json(self) -> str:
        """The event as one line of JSON."""
        return json.dumps(self.event)


def alert_of(c: Any) -> Alert:
    """A svs_alert of C."""

    def text(member: Any) -> Optional[str]:
        return None if member == ffi.NULL else ffi.string(member).decode("utf-8", "replace")

    return Alert(
        number=c.number,
        alert=c.alert,
        kind=text(c.kind) or "",
        state=text(c.state) or "",
        severity=text(c.severity),
        rule=text(c.rule),
        detector=text(c.detector),
        ts=c.ts,
        since=c.since,
        p=c.p,
        text=text(c.text) or "",
        event=json.loads(text(c.json) or "{}"),
    )


@dataclass(frozen=True)
class Step:
    """The result of one row: the prediction before it was learned, its evidence, the alerts that it
    opened or changed.

    y, also yhat: predicted class or number, None if not known yet. proba: {class: probability}, empty if not
    known. scores: one float for a regression and for two classes (above 0: the class that appeared
    second), else one for each class in the order of their first appearance. interval: (low, high)
    of a regression or None. learned: the row had a label and was learned.
    """

    y: Any = None
    proba: Dict[Any, float] = None  # type: ignore[assignment]
    scores: Tuple[float, ...] = ()
    interval: Optional[Tuple[float, float]] = None
    learned: bool = False
    evidence: Evidence = Evidence()
    alerts: Tuple[Alert, ...] = ()

    def __post_init__(self) -> None:
        if self.proba is None:
            object.__setattr__(self, "proba", {})

    @property
    def yhat(self) -> Any:
        """The prediction by the name that it has in a score of `Stream`, where y is the label."""
        return self.y

    @property
    def novelty(self) -> float:
        """The evidence's novelty, 1 - membership."""
        return self.evidence.novelty

    @property
    def p(self) -> float:
        """The evidence's conformal p-value."""
        return self.evidence.p

    @property
    def surprise(self) -> float:
        """The evidence's surprise, -log10 of the smallest p of all detectors."""
        return self.evidence.surprise

    @property
    def anomaly(self) -> float:
        """The evidence's anomaly of the row and its sensors together, 0 to 1."""
        return self.evidence.anomaly
