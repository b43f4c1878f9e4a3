"""Saved, pickled and copied learners continue bit for bit; bytes of another version or damaged ones
are refused.
"""
import copy
import io
import pickle
import subprocess
import sys

import numpy as np
import pytest

import svmstream
from svmstream import ALSVM, Auto, Monitor, Novelty, _archive, errors

rng = np.random.default_rng(3)


def rows(n, start=0):
    for i in range(start, start + n):
        r = np.random.default_rng(i).normal(size=3)
        yield {"a": r[0], "b": r[1], "word": "xyz"[i % 3], "c": None if i % 9 == 4 else r[2]}, r[
            0
        ] + r[1], 1.7e9 + 60.0 * i


def feed(model, n, start=0):
    regress = getattr(model, "task", "") == "regress"
    results = []
    for x, v, ts in rows(n, start):
        results.append(
            repr(
                model.step(
                    x,
                    (v if regress else bool(v > 0)) if hasattr(model, "task") else None,
                    ts=ts,
                    id=int(ts),
                )
            )
        )
    return results


MAKERS = [
    lambda: ALSVM(
        window=100, prices={(True, False): 3.0, False: 2}, class_weight={True: 2, False: 1}
    ),
    lambda: ALSVM(task="regress", forgetting=0.99, settings={"interval": 0.8}),
    lambda: Auto(missing="carry", categories=("word",)),
    lambda: Auto(task="regress"),
    lambda: Novelty(window=50),
    lambda: Monitor(limits={"a": (-2, None)}, budget="1/hour"),
]
WAYS = {
    "pickle": lambda m: pickle.loads(pickle.dumps(m)),
    "old pickle": lambda m: pickle.loads(pickle.dumps(m, 2)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "bytes": lambda m: type(m).from_bytes(m.to_bytes()),
    "bytearray": lambda m: type(m).from_bytes(bytearray(m.to_bytes())),
}


@pytest.mark.parametrize("make", MAKERS)
def test_every_way_continues_bit_for_bit(make, tmp_path):
    model = make()
    feed(model, 160)
    model.save(tmp_path / "file")
    stream = io.BytesIO()
    model.save(stream)
    stream.seek(0)
    again = {name: way(model) for name, way in WAYS.items()}
    again["path"] = type(model).load(tmp_path / "file")
    again["string"] = type(model).load(str(tmp_path / "file"))
    again["file object"] = type(model).load(stream)
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
    before = model.fingerprint()
    expected = feed(model, 60, 160)
    after = model.fingerprint()
    assert before != after
    for name, other in again.items():
        assert other is not model and other.fingerprint() == before, name
        assert other.get_params() == model.get_params() and repr(other) == repr(model), name
        assert feed(other, 60, 160) == expected, name
        assert other.fingerprint() == after, name
        assert [a.event for a in other.alerts] == [a.event for a in model.alerts]


def test_an_empty_learner():
    for make in MAKERS:
        model = make()
        other = pickle.loads(pickle.dumps(model))
        assert feed(other, 30) == feed(model, 30)


@pytest.mark.parametrize(
    "labels",
    [
        [True, False],
        [1, 0],
        ["a", "b"],
        np.array(["a", "b"]),
        np.array([3, 5], np.int8),
        np.array([1.0, 2.0]),
        np.array([1.5, 2.5], np.float32) * 2,
        np.array(["a", "b"], object),
        np.array([True, False]),
    ],
)
def test_labels_keep_their_type(labels):
    model = ALSVM().partial_fit(rng.normal(size=(2, 3)), labels)
    for other in (model, pickle.loads(pickle.dumps(model)), ALSVM.from_bytes(model.to_bytes())):
        assert other.classes_.dtype == np.asarray(labels).dtype
        assert other.predict(np.ones((1, 3))).dtype == np.asarray(labels).dtype
        assert type(other.predict_one([1, 1, 1])) is type(list(labels)[0]) or isinstance(
            labels, np.ndarray
        )


def test_attributes_of_subclasses_travel_in_pickles():
    model = Tagged("t", C=2.0).learn_one({"a": 1}, 1)
    model.note = [1]
    other = pickle.loads(pickle.dumps(model))
    assert (other.tag, other.C, other.note) == ("t", 2.0, [1]) and other.note is not model.note
    assert copy.copy(model).note is model.note and copy.deepcopy(model).note is not model.note


class Tagged(ALSVM):
    def __init__(self, tag, C=1.0):
        super().__init__(C=C)
        self.tag = tag


# ---- what is refused


@pytest.fixture(scope="module")
def saved():
    model = ALSVM()
    feed(model, 40)
    return model.to_bytes()


def test_any_damaged_byte_is_found(saved):
    for at in [*range(0, 120), *range(120, len(saved), max(1, len(saved) // 150)), len(saved) - 1]:
        damaged = bytearray(saved)
        damaged[at] ^= 0x10
        with pytest.raises((errors.DamagedError, errors.UnavailableError)):
            ALSVM.from_bytes(damaged)


def test_cut_off_bytes(saved):
    for size in [0, 1, 20, 40, 60, len(saved) // 2, len(saved) - 1]:
        with pytest.raises(errors.DamagedError):
            ALSVM.from_bytes(saved[:size])
    with pytest.raises(errors.DamagedError):
        ALSVM.from_bytes(saved + b"x")


def test_damage_of_the_state_itself(saved):
    """The checksum of the archive is right, its contents are not."""
    about, state = _archive.unpack(saved)
    for wrong in (
        b"",
        state[:-1],
        state[:100],
        b"\0" * 500,
        state[:200] + bytes([state[200] ^ 1]) + state[201:],
    ):
        with pytest.raises((errors.DamagedError, errors.UnavailableError)):
            ALSVM.from_bytes(_archive.pack(about, wrong))
    assert ALSVM.from_bytes(_archive.pack(about, state)).seen == 40


@pytest.mark.parametrize(
    "wrong, error",
    [
        ("text", TypeError),
        (None, TypeError),
        (3, TypeError),
        (b"PK\3\4 something else", errors.DamagedError),
        (pickle.dumps({"a": 1}), errors.DamagedError),
    ],
)
def test_what_is_no_archive(wrong, error):
    with pytest.raises(error):
        ALSVM.from_bytes(wrong)


def test_another_class(saved, tmp_path):
    with pytest.raises(errors.WrongKindError, match="a saved ALSVM, not one of Auto"):
        Auto.from_bytes(saved)
    with pytest.raises(OSError):
        ALSVM.load(tmp_path / "absent")
    with pytest.raises(OSError) as found:
        ALSVM().save(tmp_path / "absent" / "file")
    assert found.value.filename == str(tmp_path / "absent" / "file")
    assert not list(tmp_path.iterdir())


def test_another_version(saved):
    with pytest.raises(errors.UnavailableError, match="format '2'.*format 1"):
        ALSVM.from_bytes(saved.replace(b"archive 1\n", b"archive 2\n", 1))
    for state in (
        {},
        None,
        {"a": 1},
        {"archive": b"", "attributes": {}},
        {"archive": saved[:99], "attributes": {}},
    ):
        with pytest.raises(errors.DamagedError):
            ALSVM.__new__(ALSVM).__setstate__(state)
    with pytest.raises(errors.UnavailableError, match="version"):
        ALSVM.__new__(ALSVM).__setstate__(
            {"archive": saved.replace(b"archive 1\n", b"archive 9\n", 1), "attributes": {}}
        )
    old = pickle.dumps(ALSVM()).replace(
        b"svmstream python archive 1\n", b"svmstream python archive 7\n"
    )
    with pytest.raises(errors.UnavailableError, match="version"):
        pickle.loads(old)


def test_what_cannot_be_saved_says_so():
    model = ALSVM(class_weight={1: 2.0})
    model.class_weight = object()
    with pytest.raises(errors.UnsupportedError, match="object"):
        model.to_bytes()


def test_another_process_continues(tmp_path):
    model = Auto()
    feed(model, 50)
    model.save(tmp_path / "model")
    code = (
        "import svmstream; m = svmstream.Auto.load(%r); "
        "print(m.fingerprint(), m.predict_one({'a': 1, 'word': 'x'}), m)" % str(tmp_path / "model")
    )
    out = subprocess.run(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    ).stdout
    assert out.strip() == "%s %s %s" % (
        model.fingerprint(),
        model.predict_one({"a": 1, "word": "x"}),
        model,
    )
    assert svmstream.__version__ in str(_archive.unpack(model.to_bytes())[0]["version"])
