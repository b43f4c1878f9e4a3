"""The library beneath the package: values and settings to C and back, and every error code as an
exception.
"""
import copy
import enum
import math
import pickle
import re

import numpy as np
import pytest

import svmstream
from svmstream import _library as native
from svmstream import errors

ffi, lib = native.ffi, native.lib


def codes():
    return [ffi.string(lib.svs_code_name(code)).decode() for code in range(1, lib.SVS_CODE_COUNT)]


def test_version_is_that_of_the_header_and_the_tree(root):
    header = (root / "include/svmstream/svmstream.h").read_text()
    release = svmstream.__version__.partition("+")[0]
    assert '#define SVS_VERSION "%s"' % release in header


def test_every_public_function_is_there(root):
    for header in (root / "include/svmstream").glob("*.h"):
        for name in re.findall(r"^SVS_API [^;]*?\b(svs_\w+)\(", header.read_text(), re.M):
            assert callable(getattr(lib, name)), name


@pytest.mark.parametrize("code", codes())
def test_each_code_is_an_exception(code):
    error = errors.by_code(code, "what, where, what to do")
    assert isinstance(error, errors.SvmstreamError)
    assert type(error) is not errors.SvmstreamError, "no class for " + code
    assert error.code == code and str(error) == "what, where, what to do"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error) and again.code == code
    assert copy.copy(error).code == code


def test_codes_of_newer_processes():
    error = errors.by_code("from_the_future", "a sentence")
    assert type(error) is errors.SvmstreamError and error.code == "from_the_future"
    assert pickle.loads(pickle.dumps(error)).code == "from_the_future"


@pytest.mark.parametrize(
    "code, base",
    [
        ("not_finite", ValueError),
        ("wrong_type", TypeError),
        ("wrong_type", ValueError),
        ("setting", ValueError),
        ("unknown_id", KeyError),
        ("no_memory", MemoryError),
        ("io", OSError),
        ("timeout", TimeoutError),
        ("not_allowed", PermissionError),
        ("not_fitted", ValueError),
        ("not_fitted", AttributeError),
    ],
)
def test_second_bases(code, base):
    assert isinstance(errors.by_code(code, "x"), base)


def test_not_fitted_is_also_that_of_scikit_learn():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError, match="nothing learned"):
        raise errors.by_code("not_fitted", "nothing learned")


class Color(str, enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    "given, back",
    [
        (None, None),
        (True, 1),
        (0, 0),
        (-7, -7),
        (2**63 - 1, 2**63 - 1),
        (-(2**63), -(2**63)),
        (0.5, 0.5),
        (-0.0, -0.0),
        ("", ""),
        ("spam", "spam"),
        ("a\0b", "a\0b"),
        ("Grüße 🙂", "Grüße 🙂"),
        (np.int8(-3), -3),
        (np.uint64(9), 9),
        (np.float32(0.25), 0.25),
        (np.float64(1.5), 1.5),
        (np.bool_(True), 1),
        (np.str_("q"), "q"),
        (np.array(4), 4),
        (Color.RED, "red"),
    ],
)
def test_values_come_back(given, back):
    cell, keep = native.value(given)
    result = native.from_value(cell[0])
    assert result == back and type(result) is type(back)
    if back == 0:
        assert math.copysign(1, result) == math.copysign(1, back)
    del keep


@pytest.mark.parametrize(
    "given, error",
    [
        (2**63, errors.TooLargeError),
        (np.uint64(2**63), errors.TooLargeError),
        (b"bytes", errors.WrongTypeError),
        ([1], errors.WrongTypeError),
        (np.array([1, 2]), errors.WrongTypeError),
        (1j, errors.WrongTypeError),
        (object(), errors.WrongTypeError),
        (np.datetime64("2020-01-01"), errors.WrongTypeError),
    ],
)
def test_values_that_are_refused(given, error):
    with pytest.raises(error, match="the label"):
        native.value(given)


@pytest.mark.parametrize(
    "given, text",
    [
        (True, "yes"),
        (False, "no"),
        (None, "none"),
        (3, "3"),
        (0.5, "0.5"),
        (1e-9, "1e-09"),
        (2.0, "2"),
        ("a,b", "a,b"),
        (["a", "b"], "a,b"),
        ((1, 2.5), "1,2.5"),
        ({"up": 2, "down": 0.5}, "up=2,down=0.5"),
        (np.int64(8), "8"),
        (np.float32(0.5), "0.5"),
        (np.bool_(False), "no"),
    ],
)
def test_settings_as_text(given, text):
    assert native.setting_text("window", given) == text


def test_settings_for_the_library():
    pairs, count, keep = native.settings({"window": 2000, "novelty.learn": True})
    assert (
        count == 2
        and ffi.string(pairs[1].key) == b"novelty.learn"
        and ffi.string(pairs[1].value) == b"yes"
    )
    assert native.settings({})[1] == 0
    for wrong in ({"window": object()}, {"window": "1\0000"}, {3: 4}):
        with pytest.raises(errors.SettingError):
            native.settings(wrong)
    del keep


def test_the_learner_learns():
    """The library itself, through cffi: two classes that differ are separated."""
    options, err = ffi.new("svs_options *"), native.Error()
    lib.svs_options_default(options)
    learner = ffi.new("svs_learner **", lib.svs_learner_new(options, 2, err))
    assert learner[0] != ffi.NULL, native.failure(err)
    out, sample = ffi.new("svs_step *"), ffi.new("svs_sample *")
    right = 0
    try:
        for i in range(40):
            x = np.array([i % 2 - 0.5, i % 7], dtype=np.float64)
            sample.x, sample.d, sample.weight = ffi.from_buffer("double[]", x), 2, 1
            keep = native.fill(sample.y, "odd" if i % 2 else "even")
            native.check(lib.svs_learner_step(learner[0], sample, i, out, err), err)
            right += out.predicted == out.label
            del keep
        assert right > 30
        assert native.from_value(lib.svs_learner_class(learner[0], 1)) == "odd"
        sample.weight = -1
        with pytest.raises(errors.BadWeightError, match="weight"):
            native.check(lib.svs_learner_step(learner[0], sample, 40, out, err), err)
    finally:
        lib.svs_learner_free(learner)
