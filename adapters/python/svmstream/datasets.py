"""Rows from files, for examples and for `svmstream.evaluate`: CSV and JSON lines, also compressed
with gzip.

`rows` yields pairs (x, y): x is a dict from column to float, word (str) or None where the value is
missing, as River's data sets have them; y is the label.

>>> import io
>>> from svmstream import datasets
>>> log = io.BytesIO(b"temp,machine,status\\n21.5,press-3,ok\\nNA,press-1,fail\\n")
>>> for x, y in datasets.rows(log, label="status"):
...     print(x, y)
{'temp': 21.5, 'machine': 'press-3'} ok
{'temp': None, 'machine': 'press-1'} fail

The program itself guesses more of a file (`svmstream help input`): thousands separators, units,
times in other forms. Here a cell that is not a plain number is a word.
"""
from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
import os
import re
from typing import (
    IO,
    Any,
    Collection,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from . import errors
from ._warning import warn

__all__ = ["rows"]

Cell = Union[None, float, str]
Row = Tuple[Any, ...]  # (x, y) or (x, y, {"ts": ..., "id": ..., "w": ...})
Source = Union[str, "os.PathLike[str]", IO[bytes]]

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_MISSING = frozenset(
    word.lower()
    for word in (  # the setting missing.words
        "",
        "NA",
        "NaN",
        "null",
        "?",
        "-",
        "N/A",
        "#N/A",
        "#N/A N/A",
        "#NA",
        "<NA>",
        "None",
        "-NaN",
        "1.#IND",
        "-1.#IND",
        "1.#QNAN",
        "-1.#QNAN",
    )
)
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(\.\d+)?\s*(Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
# Numbers from this size on are nanoseconds, microseconds, milliseconds.
_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
_LABEL = "label"
_NAME_MAX = 64  # bytes of a column's name


def rows(
    source: Source,
    label: str = _LABEL,
    *,
    ts: str = "",
    id: str = "",
    weight: str = "",
    ignore: Collection[str] = (),
    categories: Collection[str] = (),
) -> Iterator[Row]:
    """The rows of a file, one at a time: (x, y), or (x, y, more) where `ts`, `id` or `weight` is
    given.

    source      path or binary file; CSV or JSON lines, either of them compressed with gzip or not
    label       column of the label; "" = none. y is None where the cell is missing, and
                where there is no column "label" and no other name was given
    ts          column of the time: seconds since 1970 (also milli-, micro- or nanoseconds, by their
                size) or ISO 8601, UTC where it names no zone
    id, weight  columns of the id and of the sample's weight
    ignore      columns to leave out; one that a CSV lacks is a warning
    categories  columns whose cells are words even where they look like numbers

    `more` is a dict with the keys "ts", "id" and "w", as far as they are named: the further
    arguments of `step` and `learn_one`. Values of x are float, str or None (missing). An integral
    label is an int.

    A CSV's separator is the most frequent of comma, semicolon, tab and bar in its first line. That
    line has the names of the columns, unless all of its cells are numbers: then they are c1, c2,
    ... An object of JSON lines is a map of columns, or a sample {"x": {...}, "y": ..., "id": ...,
    "ts": ..., "w": ...}; nested objects become columns such as "load.cpu", arrays are left out.

    Raises svmstream.errors.InputError with the number of the line that cannot be read, and for a
    column that a CSV lacks. A column of times that was given no part is a warning.

    >>> import io
    >>> from svmstream import datasets
    >>> lines = io.BytesIO(b'{"t": "2026-11-22T10:05:30Z", "load": {"cpu": 3}, "ok": true}')
    >>> list(datasets.rows(lines, label="ok", ts="t"))
    [({'load.cpu': 3.0}, 1, {'ts': 1795341930.0})]
    """
    roles = {"ts": ts, "id": id, "w": weight}
    roles = {role: name for role, name in roles.items() if name}
    return _rows(source, label, roles, _names(ignore), _names(categories))


def _names(names: Collection[str]) -> Collection[str]:
    """A str alone is one name, and not one for each of its letters."""
    return frozenset([names] if isinstance(names, str) else names)


def _rows(
    source: Source,
    label: str,
    roles: Mapping[str, str],
    ignore: Collection[str],
    categories: Collection[str],
) -> Iterator[Row]:
    opened = open(source, "rb") if isinstance(source, (str, os.PathLike)) else source
    try:
        text = _text(opened)
        first, lines = _first_line(text)
        json_lines = first.lstrip().startswith("{")
        objects = _json_lines(lines) if json_lines else _csv_lines(first, lines)
        begun = False
        for number, cells in objects:
            if not begun:
                begun = True
                named = {label, *roles.values(), *ignore, *categories}
                if not json_lines:  # an object of JSON need not have every column
                    _check_columns(cells, named - {"", _LABEL, *ignore})
                    _warn_of_absent(cells, ignore)
                _warn_of_times(cells, named)
            try:
                yield _row(cells, label, roles, ignore, categories)
            except ValueError as error:
                raise errors.InputError("line %d: %s" % (number, error)) from None
    finally:
        if opened is not source:
            opened.close()


def _check_columns(cells: Mapping[str, Any], named: Collection[str]) -> None:
    for name in sorted(named):
        if name not in cells:
            raise errors.BadColumnError(
                "there is no column %r; the columns are %s" % (name, ", ".join(cells))
            )


def _warn_of_absent(cells: Mapping[str, Any], ignore: Collection[str]) -> None:
    """A column that is left out under a wrong name is learned."""
    for name in sorted(ignore):
        if name not in cells:
            warn(
                "there is no column %r to leave out; the columns are %s" % (name, ", ".join(cells))
            )


def _warn_of_times(cells: Mapping[str, Any], named: Collection[str]) -> None:
    """A time that is a word differs from row to row, and says nothing of the next one."""
    for name, cell in cells.items():
        if isinstance(cell, str) and name not in named and _TIME.fullmatch(cell):
            warn(
                "the column %r holds times, which are read as words: give ts=%r if it is the time "
                "of the row, else ignore=[%r]" % (name, name, name)
            )


class _Unclosed(io.RawIOBase):
    """A view of a binary file that reads what is there and leaves the file open."""

    def __init__(self, source: IO[bytes]) -> None:
        self.read_some = getattr(source, "read1", source.read)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self.read_some(len(buffer))
        if not isinstance(found, bytes):
            raise errors.WrongTypeError(
                "the file gives %s; open it in binary mode, as open(path, 'rb')"
                % type(found).__name__
            )
        buffer[: len(found)] = found
        return len(found)


def _text(source: IO[bytes]) -> IO[str]:
    """The decoded text; gzip is known by its first bytes, whatever the name."""
    raw: Any = io.BufferedReader(_Unclosed(source))
    if raw.peek(2)[:2] == b"\x1f\x8b":
        raw = gzip.GzipFile(fileobj=raw)
    return io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace", newline="")


def _first_line(text: IO[str]) -> Tuple[str, Iterator[Tuple[int, str]]]:
    """The first line that is neither empty nor a comment, and all lines from there on with their
    numbers."""
    lines = enumerate(text, 1)
    for number, line in lines:
        if line.strip() and not line.startswith("#"):
            return line, _chain(number, line, lines)
    return "", iter(())


def _chain(number: int, line: str, lines: Iterator[Tuple[int, str]]) -> Iterator[Tuple[int, str]]:
    yield number, line
    yield from lines


def _csv_lines(
    first: str, lines: Iterator[Tuple[int, str]]
) -> Iterator[Tuple[int, Dict[str, Any]]]:
    separator = max(",;\t|", key=first.count)
    at = [0]

    def numbered() -> Iterator[str]:
        for at[0], line in lines:
            yield line

    names: List[str] = []
    for cells in csv.reader(numbered(), delimiter=separator):
        cells = [c.strip() for c in cells]
        if not any(cells) or cells == names:  # an empty line, or the header once more
            continue
        if not names:
            names, data = _header(cells, at[0])
            if not data:
                continue
        if len(cells) != len(names):
            raise errors.InputError(
                "line %d: it has %d cells, the columns are %d" % (at[0], len(cells), len(names))
            )
        yield at[0], dict(zip(names, cells))


def _header(cells: Sequence[str], number: int) -> Tuple[List[str], bool]:
    """Names of the columns, and whether the line is a row already."""
    if all(_NUMBER.fullmatch(c) for c in cells):
        return ["c%d" % (i + 1) for i in range(len(cells))], True
    names = [c or "c%d" % (i + 1) for i, c in enumerate(cells)]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise errors.InputError(
            "line %d: the column %r occurs twice; rename one of them" % (number, twice[0])
        )
    return names, False


def _json_lines(lines: Iterator[Tuple[int, str]]) -> Iterator[Tuple[int, Dict[str, Any]]]:
    for number, line in lines:
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise errors.NotJsonError("line %d: it is not JSON: %s" % (number, error)) from None
        if not isinstance(row, dict):
            raise errors.InputError(
                "line %d: it is a %s, not an object" % (number, type(row).__name__)
            )
        yield number, row


def _row(
    cells: Dict[str, Any],
    label: str,
    roles: Mapping[str, str],
    ignore: Collection[str],
    categories: Collection[str],
) -> Row:
    if isinstance(cells.get("x"), dict):  # a sample as on the wire: it names its parts itself
        more = {key: cells[key] for key in ("ts", "id", "w") if cells.get(key) is not None}
        y = cells.get("y")
        cells, label = cells["x"], ""
    else:
        more = {role: _role(role, cells[name]) for role, name in roles.items() if name in cells}
        y = _label(cells.get(label)) if label else None
    drop = {label, *roles.values(), *ignore}
    x: Dict[str, Cell] = {}
    _columns(x, "", cells, drop, categories)
    return (x, y, {k: v for k, v in more.items() if v is not None}) if roles or more else (x, y)


def _columns(
    x: Dict[str, Cell],
    prefix: str,
    cells: Mapping[str, Any],
    drop: Collection[str],
    categories: Collection[str],
) -> None:
    for key, value in cells.items():
        name = prefix + key
        if name in drop or isinstance(value, list):
            continue
        if isinstance(value, dict):
            _columns(x, name + ".", value, drop, categories)
        elif len(name.encode()) <= _NAME_MAX:
            if name in x:
                raise ValueError("the column %r occurs twice" % name)
            x[name] = _cell(value, name in categories)


def _cell(value: Any, word: bool) -> Cell:
    if value is None or (isinstance(value, str) and value.lower() in _MISSING):
        return None
    if isinstance(value, str):
        return float(value) if not word and _NUMBER.fullmatch(value) else value
    if isinstance(value, float) and value != value:
        return None
    return "%.17g" % value if word else float(value)


def _label(value: Any) -> Union[None, int, float, str]:
    """Integral numbers are ints, so that 1 and 1.0 are one class."""
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    cell = _cell(value, False)
    whole = isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53
    return int(cell) if whole else cell  # type: ignore[arg-type]


def _role(role: str, value: Any) -> Union[None, int, float, str]:
    if role == "ts":
        return _time(value)
    plain = _label(value)
    if role == "w" and isinstance(plain, str):
        raise ValueError("the weight %r is not a number" % plain)
    return plain


def _time(value: Any) -> Optional[float]:
    """Seconds since 1970."""
    cell = _cell(value, False)
    if not isinstance(cell, str):
        size = abs(cell or 0.0)
        return next((cell / per for least, per in _UNITS if cell and size >= least), cell)
    match = _TIME.fullmatch(cell.strip())
    if not match:
        raise ValueError(
            "the time %r is neither a number nor ISO 8601, such as " "2026-11-22T10:05:30Z" % cell
        )
    day, clock, fraction, zone = match.groups()
    offset = "+00:00" if zone in (None, "Z") else zone if ":" in zone else zone[:3] + ":" + zone[3:]
    whole = datetime.datetime.fromisoformat("%sT%s%s" % (day, clock or "00:00", offset))
    return whole.timestamp() + float(fraction or 0)
