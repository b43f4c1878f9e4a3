"""The bytes of a saved learner: what Python knows of it as JSON, then the stream's own state, and a
checksum of both.

    magic, 16 bytes of checksum (BLAKE2b of all that follows), 8 bytes length of the JSON, JSON,
    state

JSON keeps tuples, keys of any kind and numpy's scalars, and needs no pickle: loading runs no
code."""
from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Dict, Tuple

import numpy as np

from . import errors

MAGIC = b"svmstream python archive 1\n"
MARK = b"svmstream python archive "
_LIST = (list, tuple)
KEYS: Dict[str, Any] = {  # what an archive holds, and the types
    "class": str,
    "params": (dict, type(None)),
    "labels": _LIST,
    "of_objects": bool,
    "fitted": bool,
    "declared": (*_LIST, type(None)),
    "extra": _LIST,
    "alerts": _LIST,
}


def _packed(value: Any) -> Any:
    if value is None or isinstance(value, (bool, str)) or type(value) in (int, float):
        return value
    if (
        isinstance(value, (np.generic, np.ndarray))
        and value.ndim == 0
        and value.dtype.kind in "iubfU"
    ):
        return {"numpy": value.dtype.str, "value": _packed(value.item())}
    if isinstance(value, (int, float)):
        return (int if isinstance(value, int) else float)(value)
    if isinstance(value, (list, tuple)):
        return {
            type(value).__name__
            if type(value) in (list, tuple)
            else "tuple": [_packed(v) for v in value]
        }
    if isinstance(value, dict):
        return {"dict": [[_packed(k), _packed(v)] for k, v in value.items()]}
    raise errors.UnsupportedError(
        "a %s cannot be saved; keep it as a number, a string, a list or a dict"
        % type(value).__name__
    )


def _unpacked(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "numpy" in value:
        item, name = value["value"], value["numpy"]
        # A dtype states a size, which is memory: no more than its one scalar needs.
        most = max(1, len(item)) if isinstance(item, str) else 16
        found = re.fullmatch("[<>|]([iubfU])([0-9]{1,9})", name)
        if found is None or int(found[2]) > most:
            raise ValueError("the dtype %.20s" % name)
        return np.array(item, dtype=np.dtype(name))[()]
    if "dict" in value:
        return {_unpacked(k): _unpacked(v) for k, v in value["dict"]}
    kind = tuple if "tuple" in value else list
    return kind(_unpacked(v) for v in value.get("tuple", value.get("list", ())))


def pack(about: Dict[str, Any], state: bytes) -> bytes:
    """The archive of a learner."""
    text = json.dumps({k: _packed(v) for k, v in about.items()}).encode()
    rest = len(text).to_bytes(8, "little") + text + state
    return MAGIC + hashlib.blake2b(rest, digest_size=16).digest() + rest


def unpack(data: Any) -> Tuple[Dict[str, Any], bytes]:
    """What pack was given. DamagedError: not such bytes, or damaged; UnavailableError: of another
    format.
    """
    try:
        data = bytes(memoryview(data))
    except TypeError as error:
        raise errors.WrongTypeError(
            "a saved learner is bytes, not %s" % type(data).__name__
        ) from error
    if not data.startswith(MAGIC):
        if data.startswith(MARK):
            raise errors.UnavailableError(
                "these bytes have format %a; this version of svmstream reads "
                "format 1: load them with the version that wrote "
                "them" % data[len(MARK) : len(MARK) + 8].split(b"\n")[0].decode("ascii", "replace")
            )
        raise errors.DamagedError(
            "these bytes are not a learner that was saved by svmstream"
            if data
            else "there are no bytes: the file is empty"
        )
    rest = data[len(MAGIC) + 16 :]
    if hashlib.blake2b(rest, digest_size=16).digest() != data[len(MAGIC) : len(MAGIC) + 16]:
        raise errors.DamagedError(
            "the bytes of this learner are damaged or truncated: their checksum is not theirs"
        )
    end = 8 + int.from_bytes(rest[:8], "little")
    try:
        about = {k: _unpacked(v) for k, v in json.loads(rest[8:end].decode()).items()}
        for name, kinds in KEYS.items():
            if not isinstance(about[name], kinds):
                raise TypeError("%s is a %s" % (name, type(about[name]).__name__))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError,
            RecursionError) as error:
        raise errors.DamagedError(
            "the bytes of this learner are damaged: their checksum is right, but they hold no "
            "learner (%s: %.100s)" % (type(error).__name__, error)
        ) from error
    return about, rest[end:]
