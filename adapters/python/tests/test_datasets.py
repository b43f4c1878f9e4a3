"""Rows of files: every form of a file gives the same rows; what cannot be read is refused with its
line.
"""
import gzip
import io
import json
import random

import pytest

from svmstream import datasets, errors

TABLE = [
    ({"a": 1.5, "b": None, "c": "x, y"}, "up"),
    ({"a": -2e-3, "b": 7.0, "c": 'say "hi"'}, "down"),
    ({"a": None, "b": 0.0, "c": None}, None),
    ({"a": 1e300, "b": -0.5, "c": "Grüße"}, 3),
]


def as_csv(separator, newline="\n", table=TABLE):
    def cell(v):
        text = "" if v is None else repr(v) if isinstance(v, float) else str(v)
        return (
            '"%s"' % text.replace('"', '""')
            if any(m in text for m in (separator, '"', "\n"))
            else text
        )

    lines = [separator.join(["a", "b", "c", "label"])]
    lines += [separator.join(cell(v) for v in (*x.values(), y)) for x, y in table]
    return newline.join(lines).encode()


def as_json(table=TABLE):
    return "\n".join(json.dumps(dict(x, label=y)) for x, y in table).encode()


def as_samples(table=TABLE):
    return "\n\n".join(json.dumps({"x": x, "y": y}) for x, y in table).encode()


FORMS = {
    "comma": as_csv(","),
    "semicolon": as_csv(";"),
    "tab": as_csv("\t"),
    "bar": as_csv("|"),
    "crlf": as_csv(",", "\r\n"),
    "bom": b"\xef\xbb\xbf" + as_csv(","),
    "comments": b"# made by hand\n\n" + as_csv(","),
    "json": as_json(),
    "samples": as_samples(),
    "header again": as_csv(",").replace(b"\n", b"\na,b,c,label\n", 1),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("packed", [False, True])
def test_every_form_has_the_same_rows(form, packed, tmp_path):
    content = gzip.compress(FORMS[form]) if packed else FORMS[form]
    assert list(datasets.rows(io.BytesIO(content))) == TABLE
    path = tmp_path / "rows"
    path.write_bytes(content)
    assert list(datasets.rows(path)) == list(datasets.rows(str(path))) == TABLE


def test_random_numbers_come_back():
    rng = random.Random(5)
    table = [
        (
            {
                "a": rng.uniform(-1, 1) * 10.0 ** rng.randint(-300, 300),
                "b": float(rng.randint(-9, 9)),
                "c": "w%d" % i,
            },
            i % 3,
        )
        for i in range(500)
    ]
    assert list(datasets.rows(io.BytesIO(as_csv(",", table=table)))) == table
    assert list(datasets.rows(io.BytesIO(as_json(table)))) == table


@pytest.mark.parametrize(
    "text, value",
    [
        ("1", 1.0),
        ("-.5", -0.5),
        ("1.", 1.0),
        ("+2e3", 2000.0),
        ("1_000", "1_000"),
        ("inf", "inf"),
        ("0x10", "0x10"),
        ("1,5", "1,5"),
        ("٣", "٣"),
        ("NA", None),
        ("nan", None),
        ("n/a", None),
        ("?", None),
        ("", None),
        ("-", None),
        ("#NA", None),
        (" 4 ", 4.0),
        ("1e", "1e"),
    ],
)
def test_cells(text, value):
    ((x, _),) = datasets.rows(io.BytesIO(b'a;label\n%s;1\n' % text.encode()))
    assert x == {"a": value}


@pytest.mark.parametrize(
    "text, y",
    [
        ("1", 1),
        ("1.0", 1),
        ("1.5", 1.5),
        ("yes", "yes"),
        ("NA", None),
        ("007", 7),
        ("9" * 18, int("9" * 18)),
    ],
)
def test_labels(text, y):
    ((_, got),) = datasets.rows(io.BytesIO(b"a,label\n1,%s\n" % text.encode()))
    assert got == y and type(got) is type(y)


@pytest.mark.parametrize(
    "text, ts",
    [
        ("0", 0.0),
        ("1700000000", 1.7e9),
        ("1700000000000", 1.7e9),
        ("1700000000000000", 1.7e9),
        ("1700000000000000000", 1.7e9),
        ("2023-11-14", 1699920000.0),
        ("2023-11-14T22:13:20Z", 1.7e9),
        ("2023-11-14 22:13:20", 1.7e9),
        ("2023-11-14T23:13:20.25+01:00", 1.7e9 + 0.25),
        ("2023-11-14T17:13:20-0500", 1.7e9),
        ("NA", None),
    ],
)
def test_times(text, ts):
    ((x, y, more),) = datasets.rows(io.BytesIO(b"t;a;label\n%s;1;2\n" % text.encode()), ts="t")
    assert x == {"a": 1.0} and y == 2 and more == ({} if ts is None else {"ts": ts})


def test_roles():
    content = b"n,w,a,b,zip,y\n7,2.5,1,2,01234,ok\nk8,1,3,4,99,NA\n"
    got = list(
        datasets.rows(
            io.BytesIO(content), "y", id="n", weight="w", ignore=["b"], categories=["zip"]
        )
    )
    assert got == [
        ({"a": 1.0, "zip": "01234"}, "ok", {"id": 7, "w": 2.5}),
        ({"a": 3.0, "zip": "99"}, None, {"id": "k8", "w": 1}),
    ]


def test_nested_objects_become_columns():
    line = b'{"load": {"cpu": 3, "by": {"core": [1, 2], "max": true}}, "label": false}'
    assert list(datasets.rows(io.BytesIO(line))) == [({"load.cpu": 3.0, "load.by.max": 1.0}, 0)]


def test_a_sample_names_its_parts():
    line = b'{"x": {"a": 1}, "y": "up", "id": 4, "ts": 5.5, "w": 2}'
    assert list(datasets.rows(io.BytesIO(line))) == [
        ({"a": 1.0}, "up", {"id": 4, "ts": 5.5, "w": 2})
    ]


def test_numbers_without_names():
    assert list(datasets.rows(io.BytesIO(b"1,2\n3,4\n"), "c2")) == [
        ({"c1": 1.0}, 2),
        ({"c1": 3.0}, 4),
    ]
    assert list(datasets.rows(io.BytesIO(b""))) == []


@pytest.mark.parametrize(
    "content, error, text",
    [
        (b"t,y,w\n1,2,3\n1,2,3,4\n", errors.InputError, "line 3: it has 4 cells, the columns are 3"),
        (b"a,a\n1,2\n", errors.InputError, "line 1: the column 'a' occurs twice"),
        (b'{"a": 1}\n{"a": \n', errors.NotJsonError, "line 2: it is not JSON"),
        (b'{"a": 1}\n[1]\n', errors.InputError, "line 2: it is a list"),
        (b'{"a": {"b": 1}, "a.b": 2}', errors.InputError, "line 1: the column 'a.b' occurs twice"),
        (b"t,y,w\nyesterday,1,1\n", errors.InputError, "line 2: the time 'yesterday' is neither"),
        (b"t,y,w\n1,1,heavy\n", errors.InputError, "line 2: the weight 'heavy' is not a number"),
    ],
)
def test_what_cannot_be_read(content, error, text):
    with pytest.raises(error, match=text):
        list(datasets.rows(io.BytesIO(content), "y", ts="t", weight="w"))


def test_an_absent_file():
    with pytest.raises(FileNotFoundError):
        next(datasets.rows("absent.csv"))


def test_a_file_stays_open_and_must_be_binary():
    for content in (as_csv(","), gzip.compress(as_csv(","))):
        source = io.BytesIO(content)
        assert len(list(datasets.rows(source))) == len(TABLE)
        assert next(datasets.rows(io.BytesIO(content)))[1] == "up"
        assert not source.closed
    with pytest.raises(errors.WrongTypeError, match="binary"):
        next(datasets.rows(io.StringIO("a,b\n")))


def test_rows_are_read_one_at_a_time():
    """A stream that never ends: nothing waits for its end."""

    class Endless(io.RawIOBase):
        def __init__(self):
            self.read_so_far = 0

        def readable(self):
            return True

        def readinto(self, buffer):
            text = b"a,label\n" if self.read_so_far == 0 else b"1,2\n"
            buffer[: len(text)] = text
            self.read_so_far += len(text)
            return len(text)

    source = Endless()
    found = datasets.rows(source)
    assert [next(found) for _ in range(3)] == 3 * [({"a": 1.0}, 2)] and source.read_so_far < 100000
