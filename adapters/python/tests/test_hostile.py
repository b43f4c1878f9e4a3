"""Bytes and arrays that nobody in good faith makes: each is refused, and memory stays bounded."""
import hashlib
import random
import signal

import numpy as np
import pytest

from svmstream import ALSVM, Auto, Monitor, _archive, _blocks, _rows, errors

X = np.arange(60.0).reshape(20, 3) % 7
y = np.arange(20) % 2
MASKED = np.ma.masked_array(X, mask=X > 5)


def summed(rest):
    return _archive.MAGIC + hashlib.blake2b(rest, digest_size=16).digest() + rest


def archive(text, state=b""):
    return summed(len(text).to_bytes(8, "little") + text + state)


def saved():
    model = ALSVM(window=20)
    for i in range(40):
        model.learn_one({"a": i % 7, "w": "xyz"[i % 3]}, bool(i % 2), id=i, ts=1.7e9 + i)
    return model.to_bytes()


def test_bytes_with_a_right_checksum_and_wrong_contents_are_damaged():
    data = saved()
    rest, (about, state) = data[len(_archive.MAGIC) + 16:], _archive.unpack(data)
    end, r = int.from_bytes(rest[:8], "little"), random.Random(1)
    for _ in range(300):
        cut = rest[:r.randrange(len(rest))]
        flipped = bytearray(rest)
        flipped[r.randrange(end)] = r.randrange(256)
        for bad in (cut, bytes(flipped)):
            try:
                ALSVM.from_bytes(summed(bad)).learn_one({"a": 1, "w": "x"}, 1)
            except errors.SvmstreamError:
                pass
    for name in about:
        for value in (None, 5, "x", {"a": 5}, [5], [["{"]], [["5"]], [['{"ts": "x"}']]):
            try:
                ALSVM.from_bytes(_archive.pack({**about, name: value}, state))
            except errors.SvmstreamError:
                pass


@pytest.mark.parametrize("text", [
    b"", b"5", b"[]", b"{", b"[" * 100_000, b"\xff\xfe", b'{"class": "ALSVM"}',
    b'{"class": ' + b'{"list": [' * 3000 + b"1" + b"]}" * 3000 + b"}",
    b'{"class": {"numpy": "<U2000000000", "value": "a"}}',
    b'{"class": {"numpy": "O", "value": "a"}}',
    b'{"class": {"dict": [[{"list": []}, 1]]}}',
], ids=range(11))
def test_json_of_an_archive_that_is_no_archive(text):
    with pytest.raises(errors.DamagedError, match="damaged"):
        ALSVM.from_bytes(archive(text))


@pytest.mark.parametrize("name", ["__class__", "_handle", "learn_one", "unknown"])
def test_an_archive_sets_parameters_only(name):
    about, state = _archive.unpack(saved())
    about["params"] = {**about["params"], name: 5}
    with pytest.raises(errors.DamagedError, match=name):
        ALSVM.from_bytes(_archive.pack(about, state))


def test_a_word_lives_as_long_as_its_row(monkeypatch):
    """The store of words is emptied in the middle of a row, of a new row and of a block."""
    monkeypatch.setattr(_rows, "MAX_TEXTS", 7)
    model = ALSVM(missing="zero")
    row = {"w%d" % j: "word %d" % j for j in range(40)}
    numbers = {"n%d" % j: float(j) for j in range(40)}
    for i in range(20):
        model.learn_one(row, i % 2).learn_one({**row, **numbers}, i % 2)
        model.learn_one({**numbers, "i%d" % i: "z"}, i % 2)
    assert set(model.columns) == {*row, *numbers, *("i%d" % i for i in range(20))}
    assert all("%s=%s" % pair in model.features for pair in row.items())


def test_words_do_not_pile_up():
    model = ALSVM(window=10)
    for i in range(300):
        model.learn_one({"a": 1.0, "w": "x" * 100_000 + str(i)}, i % 2)
    kept = sum(len(text) for text in model._rows._texts)
    assert kept < 2 * _rows.MAX_BYTES
    for i in range(100):
        with pytest.raises(errors.LimitError):
            model.predict_one({"c%d_%d" % (i, j): 1.0 for j in range(10_000)})
    assert sum(s.count for s in model._rows.shapes.values()) < 1.1 * _rows.MAX_COLUMNS


def test_a_mask_is_not_ignored():
    for call in (
        lambda m: m.partial_fit(MASKED, y),
        lambda m: m.partial_fit(X, np.ma.masked_array(y, mask=y > 0)),
        lambda m: m.partial_fit(X, y, sample_weight=np.ma.masked_array(y + 1.0, mask=y > 0)),
        lambda m: m.learn_many(X, y, ts=np.ma.masked_array(y + 1.0, mask=y > 0)),
        lambda m: m.learn_many(X, y, ids=np.ma.masked_array(y, mask=y > 0)),
        lambda m: m.learn_one(np.ma.masked_array([1.0, 2.0, 3.0], mask=[0, 1, 0]), 1),
    ):
        model = ALSVM()
        with pytest.raises(errors.MissingValueError, match="masked"):
            call(model)
        assert model.seen == 0
    gaps = np.where(MASKED.mask, np.nan, X)
    masked, missing = (ALSVM(missing="mean").partial_fit(x, y).coef_ for x in (MASKED, gaps))
    assert np.array_equal(masked, missing)
    whole, plain = (ALSVM().partial_fit(x, y).coef_ for x in (np.ma.masked_array(X), X))
    assert np.array_equal(whole, plain)


def test_texts_and_huge_numbers_are_no_times_or_weights():
    for kwargs, error in (
        ({"ts": "12"}, errors.WrongTypeError), ({"ts": b"12"}, errors.WrongTypeError),
        ({"ts": 10**400}, errors.TooLargeError), ({"w": "2"}, errors.BadWeightError),
        ({"w": 10**400}, errors.BadWeightError), ({"w": 1j}, errors.BadWeightError),
    ):
        model = ALSVM()
        with pytest.raises(error):
            model.learn_one({"a": 1.0}, 1, **kwargs)
        assert model.seen == 0
    with pytest.raises(errors.WrongTypeError, match="sequences"):
        ALSVM().learn_many([[1.0], [2.0]], [0, 1], ts=[[1], 2])
    with pytest.raises(errors.BadIdError, match="int"):
        ALSVM().learn_many([[1.0], [2.0]], [0, 1], ids=5)


def test_a_set_has_no_order_and_a_nul_ends_nothing():
    with pytest.raises(errors.WrongTypeError, match="set"):
        ALSVM().learn_one({1.0, 2.0}, 0)
    with pytest.raises(errors.SettingError, match="no setting"):
        ALSVM().setting("C\0x")
    with pytest.raises(errors.WrongTypeError, match="NUL"):
        Monitor().verdict(5, True, by="ann\0x")
    with pytest.raises(errors.UnknownIdError):
        Monitor().verdict(10**30, True)
    cycle = []
    cycle.append(cycle)
    with pytest.raises(errors.SettingError, match="within"):
        Auto(settings={"categories": cycle})


@pytest.mark.parametrize("kind", [ALSVM, Auto])
def test_ctrl_c_ends_a_long_block_at_a_whole_row(kind, monkeypatch):
    long, labels = np.tile(X, (400, 1)), np.tile(np.where(y > 0, "b", "a"), 400)
    model, learn = kind(), _blocks.lib.svs_stream_learn_block
    calls = []

    class Library:
        def __getattr__(self, name):
            return getattr(_blocks_lib, name)

        @staticmethod
        def svs_stream_learn_block(*args):
            code = learn(*args)
            calls.append(args[3][0])
            if len(calls) == 2:
                signal.raise_signal(signal.SIGINT)
            return code

    _blocks_lib = _blocks.lib
    monkeypatch.setattr(_blocks, "lib", Library())
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(long, labels)
    monkeypatch.undo()
    seen = model.seen
    assert calls == [calls[0], seen] and 0 < calls[0] < seen < len(long)
    assert model.classes_.tolist() == ["a", "b"]
    whole = kind().partial_fit(long[:seen], labels[:seen])
    assert np.array_equal(model.predict(X), whole.predict(X))
    assert np.array_equal(model.decision_function(X), whole.decision_function(X))
    assert model.partial_fit(X, labels[:20]).seen == seen + 20


def test_parts_of_a_block_are_the_block(monkeypatch):
    r = np.random.default_rng(5)
    x, times = r.normal(size=(500, 3)), 1.7e9 + np.arange(500.0)
    label = np.where(x[:, 0] > 0, "b", "a")
    whole = Auto().learn_many(x, label, ts=times)
    monkeypatch.setattr(_blocks, "PART", 7)
    parts = Auto().learn_many(x, label, ts=times)
    waits = "tree_wait"  # which depend on the machine
    assert ({k: v for k, v in parts.figures().items() if not k.startswith(waits)}
            == {k: v for k, v in whole.figures().items() if not k.startswith(waits)})
    assert np.array_equal(parts.decision_function(x), whole.decision_function(x))
    assert np.array_equal(parts.predict_proba(x), whole.predict_proba(x))
    x[450, 1] = 1e300
    seen = parts.seen
    with pytest.raises(errors.TooLargeError, match="row 450"):
        parts.learn_many(x, label, ts=times)
    assert parts.seen == seen


def test_a_dict_that_changes_while_it_is_read():
    class Changing(dict):
        pass

    rows = _rows.Rows(False)
    rows.row({"a": "x", "b": "y"})
    changing = Changing(a=1.0, b="y")
    for values in ([1.0], [1.0, "y", 2.0]):
        changing.values = lambda values=values: values
        real, type_ = changing, type

        def as_dict(x):
            return dict if x is real else type_(x)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_rows, "type", as_dict, raising=False)
            with pytest.raises(RuntimeError, match="changed"):
                rows.row(changing)
