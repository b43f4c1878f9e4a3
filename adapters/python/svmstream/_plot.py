"""The plot of an evaluation as SVG: one document without scripts, fonts or images of others.

Text and axes have the colour of the surrounding text, and the lines colours that are readable on
white and on black, so that the plot suits light and dark pages alike. All text is escaped.
"""
from __future__ import annotations

import html
import math
from typing import Callable, List, Optional, Sequence, Tuple

from ._measures import Point

WIDTH, LEFT, RIGHT = 760, 56, 20
TOP, HEIGHT, GAP, LOWER = 34, 190, 30, 80
MODEL, ALERT, SURPRISE = "#3b82c4", "#d64545", "#a07a1f"
DOTS_MAX = 500
LISTED_MAX = 50  # alerts in words
POINTS_MAX = 130  # of a line: with more a noisy stream is a band
SEVERITIES = {"notice": 3, "warning": 4, "serious": 5}  # radius of the dot

Dot = Tuple[int, str, str]  # row, severity, text


def svg(points: Sequence[Point], dots: Sequence[Dot], measure: str, title: str) -> str:
    """The plot: `measure` over rows against the baselines; below it surprise, with a dot for each
    alert."""
    last = max((p.row for p in points), default=1)
    novel = any(p.surprise is not None for p in points)
    measured = any(math.isfinite(p.model) for p in points)
    lower = TOP + (HEIGHT + GAP if measured else 0)
    height = (lower + LOWER if novel else TOP + HEIGHT) + 36
    across = _scale(0, last, LEFT, WIDTH - RIGHT)
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="100%%" '
        'style="max-width:%dpx" role="img" fill="currentColor" font-family="sans-serif" '
        'font-size="12">' % (WIDTH, height, WIDTH),
        "<title>%s</title>" % html.escape(title),
    ]
    if measured:
        parts += _quality(_thinned(points), across, measure, bool(dots) and not novel)
    if novel:
        parts += _novelty(points, across, lower)
    parts += _dots(dots, across, lower + 6 if novel else TOP + HEIGHT - 8)
    parts += _rows_axis(last, across, height - 36)
    return "".join(parts) + "</svg>"


def _quality(
    points: Sequence[Point], across: Callable[[float], float], measure: str, dotted: bool
) -> List[str]:
    values = [v for p in points for v in (p.model, p.frequent, p.no_change) if math.isfinite(v)]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if high - low < 1e-9 * max(1.0, abs(high)):
        low, high = low - 0.5, high + 0.5
    up = _scale(low, high, TOP + HEIGHT, TOP)
    parts = _grid(low, high, up)
    frequent = "mean" if measure == "rmse" else "most frequent class"
    names = (
        ("no_change", "same as before", 'opacity=".45" stroke-dasharray="5 3"'),
        ("frequent", frequent, 'opacity=".8" stroke-dasharray="1 3"'),
        ("model", "model", 'stroke-width="2"'),
    )
    x = float(LEFT)
    for name, text, style in reversed(names):
        colour = MODEL if name == "model" else "currentColor"
        parts.append(
            '<line x1="%g" x2="%g" y1="16" y2="16" stroke="%s" %s/>'
            '<text x="%g" y="20">%s</text>' % (x, x + 22, colour, style, x + 27, text)
        )
        x += 50 + 7 * len(text)
    for name, _, style in names:
        line = [
            (across(p.row), up(getattr(p, name))) for p in points if math.isfinite(getattr(p, name))
        ]
        parts.append(_line(line, MODEL if name == "model" else "currentColor", style))
    parts.append(
        '<text x="%d" y="20" text-anchor="end">%s</text>'
        % (WIDTH - RIGHT, html.escape(measure + ("; dots: alerts" if dotted else "")))
    )
    return parts


def _thinned(points: Sequence[Point]) -> List[Point]:
    """Each few neighbouring points as one: the mean of their values."""
    size = math.ceil(len(points) / POINTS_MAX)
    if size < 2:
        return list(points)
    found = []
    for i in range(0, len(points), size):
        part = points[i : i + size]
        means = []
        for values in zip(*((p.model, p.frequent, p.no_change) for p in part)):
            known = [v for v in values if math.isfinite(v)]
            means.append(sum(known) / len(known) if known else math.nan)
        found.append(Point(part[-1].row, means[0], means[1], means[2], None))
    return found


def _novelty(points: Sequence[Point], across: Callable[[float], float], top: int) -> List[str]:
    surprises = [p.surprise for p in points if p.surprise is not None and math.isfinite(p.surprise)]
    high = max(surprises, default=0.0) or 1.0
    up = _scale(0, high, top + LOWER, top)
    parts = _grid(0, high, up, 3)
    line = [(across(p.row), up(p.surprise)) for p in points if p.surprise is not None]
    parts.append(_line(line, SURPRISE, ""))
    parts.append('<text x="%d" y="%d">surprise (largest); dots: alerts</text>' % (LEFT, top - 8))
    return parts


def _dots(dots: Sequence[Dot], across: Callable[[float], float], y: int) -> List[str]:
    parts = []
    shown = dots if len(dots) <= DOTS_MAX else dots[-DOTS_MAX:]
    for row, severity, text in shown:
        parts.append(
            '<circle cx="%.1f" cy="%d" r="%d" fill="%s"><title>row %d: %s</title></circle>'
            % (across(row), y, SEVERITIES.get(severity, 4), ALERT, row, html.escape(text))
        )
    return parts


def _line(points: Sequence[Tuple[float, float]], colour: str, style: str) -> str:
    if len(points) == 1:
        return '<circle cx="%.1f" cy="%.1f" r="2" fill="%s"/>' % (*points[0], colour)
    where = " ".join("%.1f,%.1f" % p for p in points)
    return '<polyline points="%s" fill="none" stroke="%s" stroke-linejoin="round" %s/>' % (
        where,
        colour,
        style,
    )


def _grid(low: float, high: float, up: Callable[[float], float], count: int = 5) -> List[str]:
    parts = []
    for value in _ticks(low, high, count):
        y = up(value)
        parts.append(
            '<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="currentColor" '
            'opacity=".15"/><text x="%d" y="%.1f" text-anchor="end">%g</text>'
            % (LEFT, WIDTH - RIGHT, y, y, LEFT - 6, y + 4, value)
        )
    return parts


def _rows_axis(last: int, across: Callable[[float], float], y: int) -> List[str]:
    parts = [
        '<line x1="%d" x2="%d" y1="%d" y2="%d" stroke="currentColor" opacity=".5"/>'
        % (LEFT, WIDTH - RIGHT, y, y)
    ]
    for value in _ticks(0, last, 6):
        parts.append(
            '<text x="%.1f" y="%d" text-anchor="middle">%s</text>'
            % (across(value), y + 16, format(int(value), ","))
        )
    parts.append('<text x="%d" y="%d" text-anchor="end">rows</text>' % (WIDTH - RIGHT, y + 32))
    return parts


def _ticks(low: float, high: float, count: int) -> List[float]:
    """Round values from low to high, about `count` of them."""
    raw = (high - low) / count
    size: float = 10.0 ** math.floor(math.log10(raw)) if raw > 0 else 1.0
    step = next((m * size for m in (1, 2, 5) if m * size >= raw), 10 * size)
    if low == 0 and step < 1 and high >= 1 and float(high).is_integer():
        step = 1.0
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    span = high - low or 1.0
    return lambda v: start + (v - low) / span * (end - start)


def page(table: str, plot: Optional[str], dots: Sequence[Dot]) -> str:
    """The table, the plot and the newest alerts as a piece of HTML, for a notebook."""
    parts = ['<pre style="line-height:1.25">%s</pre>' % html.escape(table), plot or ""]
    if dots:
        lines = ["row %6d  %s" % (row, text) for row, _, text in dots[-LISTED_MAX:]]
        summary = "%d alert%s opened" % (len(dots), "" if len(dots) == 1 else "s")
        if len(dots) > LISTED_MAX:
            summary += ", the last %d of them" % LISTED_MAX
        parts.append(
            '<details><summary>%s</summary><pre style="line-height:1.25;white-space:pre-wrap">%s'
            "</pre></details>" % (summary, html.escape("\n".join(lines)))
        )
    return "<div>%s</div>" % "".join(parts)
