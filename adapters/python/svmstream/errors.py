"""What can go wrong: one exception for each code of the library and of the wire, below
SvmstreamError.

The sentence of an error is its `str()`; `code` is the name that the program, its logs and the wire
use (`svmstream help protocol` lists them). Where Python has an exception for the same thing, it is
a second base: wrong input is a ValueError, an unknown id a KeyError, memory that ran out a
MemoryError.

>>> import svmstream
>>> issubclass(svmstream.errors.NotFiniteError, ValueError)
True
>>> svmstream.errors.by_code("unknown_id", "no sample 7 is held")
UnknownIdError('no sample 7 is held')
"""
from __future__ import annotations

import sys
from typing import Dict, Iterator, Optional, Type


class SvmstreamError(Exception):
    """Base of all errors of this package. `code`: the name of what went wrong, such as
    "not_finite".
    """

    code: str = "error"

    def __init__(self, text: str = "", code: Optional[str] = None) -> None:
        super().__init__(text)
        if code is not None:
            self.code = code

    def __str__(self) -> str:  # a KeyError would put its sentence in quotes
        return str(self.args[0]) if self.args else ""


# ---- input that is refused: nothing of it was learned


class InputError(SvmstreamError, ValueError):
    """A row, a label, a message or an argument is refused. Nothing of it was learned."""

    code = "invalid"


class EmptyError(InputError):
    """The message has no bytes."""

    code = "empty"


class NotMsgpackError(InputError):
    """The bytes are not msgpack, or the text is not of its format."""

    code = "not_msgpack"


class NotJsonError(InputError):
    """A message begins like JSON and is not JSON."""

    code = "not_json"


class TruncatedError(InputError):
    """The message ends before the object that it announces."""

    code = "truncated"


class TrailingError(InputError):
    """Bytes follow the one object that a message may hold."""

    code = "trailing"


class TooDeepError(InputError):
    """Arrays and maps are nested deeper than a sample can be."""

    code = "too_deep"


class TooLargeError(InputError):
    """A string, a number or a message exceeds what is accepted."""

    code = "too_large"


class WrongTypeError(InputError, TypeError):
    """A value has a type that is not accepted there."""

    code = "wrong_type"


class DuplicateKeyError(InputError):
    """A key or a column occurs twice in one row."""

    code = "duplicate_key"


class NotFiniteError(InputError):
    """A number is NaN or infinite."""

    code = "not_finite"


class WrongDimensionError(InputError):
    """The row has another number of features than the stream."""

    code = "wrong_dimension"


class WrongKindError(InputError):
    """The features come in another form (named, unnamed) than those of the first row."""

    code = "wrong_kind"


class BadColumnError(InputError):
    """A feature is not one that the stream has."""

    code = "bad_column"


class WrongColumnsError(InputError):
    """The names of the columns are not those of the stream."""

    code = "wrong_columns"


class UnknownColumnError(InputError):
    """A setting names a column that no row has had so far."""

    code = "unknown_column"


class BadLabelError(InputError):
    """The label does not fit the task."""

    code = "bad_label"


class AmbiguousClassError(InputError):
    """A label is an integer in some rows and a string of its digits in others."""

    code = "ambiguous_class"


class NewClassError(InputError):
    """A label names a class that no row had among many before it."""

    code = "new_class"


class BadWeightError(InputError):
    """The weight is not a positive finite number."""

    code = "bad_weight"


class BadIdError(InputError):
    """The id is missing, too long, or neither an integer nor a string."""

    code = "bad_id"


class BadKeyError(InputError):
    """The stream key is no integer and no string of up to 64 bytes, or the stream has no keys."""

    code = "bad_key"


class MissingKeyError(InputError):
    """A label or a removal does not carry the stream key of its row."""

    code = "missing_key"


class BadCursorError(InputError):
    """The cursor is no string and no bytes of up to 64."""

    code = "bad_cursor"


class MissingXError(InputError):
    """A row to learn or to score has no values."""

    code = "missing_x"


class MissingValueError(InputError):
    """A value is missing, and the setting `missing` refuses that."""

    code = "missing_value"


class OutlierError(InputError):
    """A number lies far beyond its column's values, and the setting `outlier` refuses that."""

    code = "outlier"


class TimeAheadError(InputError):
    """The time stamp lies too far ahead of the clock."""

    code = "ts_ahead"


class OneClassError(InputError):
    """The examples all have the same label."""

    code = "one_class"


class WrongStreamError(InputError):
    """The sample names another stream than the process serves."""

    code = "wrong_stream"


class UnknownOpError(InputError):
    """The `op` is unknown."""

    code = "unknown_op"


class MissingSourceError(InputError):
    """Acknowledged input needs both `src` and `n`."""

    code = "missing_source"


class GapError(InputError):
    """A sequence number was skipped."""

    code = "gap"


class SettingError(InputError):
    """A setting is unknown, out of range or contradicts another."""

    code = "setting"


# ---- what does not exist


class UnknownIdError(SvmstreamError, KeyError):
    """No sample with this id is held or waits for a label."""

    code = "unknown_id"


class UnknownKeyError(SvmstreamError, KeyError):
    """The stream has no such key (any more)."""

    code = "unknown_key"


class NotFittedError(SvmstreamError, ValueError, AttributeError):
    """The learner has learned nothing yet that answers this."""

    code = "not_fitted"


# ---- limits, files, states


class LimitError(SvmstreamError, ValueError):
    """A limit of the settings (features, classes, samples kept) would be exceeded."""

    code = "limit"


class NoMemoryError(SvmstreamError, MemoryError):
    """The memory could not be had. Nothing has changed."""

    code = "no_memory"


class FileError(SvmstreamError, OSError):
    """A file or socket could not be opened, read or written."""

    code = "io"


class DiskFullError(SvmstreamError, OSError):
    """The process's disk is full; nothing of the sample was taken."""

    code = "disk_full"


class DamagedError(SvmstreamError, ValueError):
    """Bytes or a file are damaged, or not of this program."""

    code = "damaged"


class UnavailableError(SvmstreamError):
    """The operation is known, but not available as things are set up."""

    code = "unavailable"


class UnsupportedError(SvmstreamError, NotImplementedError):
    """The operation is known, but this version cannot do it."""

    code = "not_supported"


class NotConvergedError(SvmstreamError, ArithmeticError):
    """A solver ended before its certificate met the tolerance."""

    code = "not_converged"


class NumericError(SvmstreamError, ArithmeticError):
    """The numbers leave the range in which the model can be computed."""

    code = "numeric"


# ---- the client and its process


class NotAllowedError(SvmstreamError, PermissionError):
    """The key is not listed, or lacks the role that the request needs."""

    code = "not_allowed"


class TimedOutError(SvmstreamError, TimeoutError):
    """The process did not answer in time."""

    code = "timeout"


class PeerDisconnectedError(SvmstreamError, ConnectionError):
    """A peer was disconnected for a message over the size limit."""

    code = "peer_disconnected"


class SourceForgottenError(SvmstreamError):
    """The process no longer knows this producer."""

    code = "source_forgotten"


class StateChangedError(SvmstreamError):
    """The stream changed beneath: another clock, an older state, other settings."""

    code = "state_loaded"


def _all(base: Type[SvmstreamError]) -> Iterator[Type[SvmstreamError]]:
    yield base
    for derived in base.__subclasses__():
        yield from _all(derived)


BY_CODE: Dict[str, Type[SvmstreamError]] = {c.code: c for c in _all(SvmstreamError)}
# Events rather than failures: one class serves them.
BY_CODE.update({code: StateChangedError for code in ("clock_moved", "config_changed")})


def by_code(code: str, text: str) -> SvmstreamError:
    """The exception for a code of the library or of the wire, to be raised by the caller.

    A code that this version does not know (a newer process) gives a plain SvmstreamError with it.

    >>> from svmstream import errors
    >>> errors.by_code("bad_id", "the id is empty")
    BadIdError('the id is empty')
    """
    if code == NotFittedError.code:
        return not_fitted(text)
    return BY_CODE.get(code, SvmstreamError)(text, code)


def not_fitted(text: str) -> NotFittedError:
    """NotFittedError; where scikit-learn is loaded it is also scikit-learn's, for its tools.

    >>> from svmstream import errors
    >>> isinstance(errors.not_fitted("nothing was learned"), errors.NotFittedError)
    True
    """
    theirs = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", None)
    if theirs is None:
        return NotFittedError(text)
    both: Type[NotFittedError] = type(
        "NotFittedError", (NotFittedError, theirs), {"__module__": __name__}
    )
    return both(text)
