"""Saved, copied and pickled learners: each continues bit for bit."""
from __future__ import annotations

import json
import os
from typing import Any, Dict, Mapping, Optional, Type, TypeVar

from . import _archive, errors
from ._library import Error, check, failure, ffi, lib
from ._results import Alert
from ._stream import NativeStream, free

S = TypeVar("S", bound="Saved")


class Saved(NativeStream):
    """to_bytes, from_bytes, save, load, copies and pickling."""

    __slots__ = ()

    def _state(self) -> bytes:
        data, size = ffi.new("void **"), ffi.new("size_t *")
        with self._lock:
            check(lib.svs_stream_save(self._handle, data, size, self._err), self._err)
        try:
            return bytes(ffi.buffer(data[0], size[0]))
        finally:
            lib.svs_bytes_free(data)

    def _pack(self, params: Optional[Mapping[str, Any]]) -> bytes:
        with self._lock:
            about = {
                "class": self._kind,
                "version": ffi.string(lib.svs_version()).decode(),
                "params": params,
                "labels": self._labels.named(),
                "of_objects": self._labels.of_objects,
                "fitted": self._fitted,
                "declared": self._declared,
                "extra": self._extra,
                "alerts": [[a.json] for a in self._events],
            }
            return _archive.pack(about, self._state())

    @classmethod
    def _defaults(cls) -> Dict[str, Any]:
        """Parameters that an archive does not keep."""
        return {}

    def _saved_params(self) -> Dict[str, Any]:
        return self.get_params()

    def to_bytes(self) -> bytes:
        """The whole learner; from_bytes continues it bit for bit. Needs no pickle to be read."""
        return self._pack(self._saved_params())

    @classmethod
    def from_bytes(cls: Type[S], data: Any) -> S:
        """The learner of to_bytes. DamagedError: not such bytes, or damaged; UnavailableError: of
        another version.
        """
        about, state = _archive.unpack(data)
        if about["class"] != cls._kind:
            raise errors.WrongKindError(
                "these bytes are a saved %s, not one of %s" % (about["class"], cls._kind)
            )
        new = cls.__new__(cls)
        params = {**cls._defaults(), **(about["params"] or {})}
        if set(params) != set(cls._names()):
            raise errors.DamagedError(
                "these bytes have other parameters than %s: %s"
                % (cls.__name__, ", ".join(sorted(map(str, set(params) ^ set(cls._names())))[:5]))
            )
        for name, value in params.items():
            setattr(new, name, value)
        new._restore(about, state)
        return new

    def _restore(self, about: Mapping[str, Any], state: bytes) -> None:
        """Becomes what an archive holds. The lock of an object that has one stays."""
        err = Error()
        handle = lib.svs_stream_load(state, len(state), err)
        if handle == ffi.NULL:
            raise failure(err)
        if hasattr(self, "_lock"):
            self._adopt(ffi.gc(handle, free))
        else:
            self._open(handle)
        self._labels.restore(about["labels"])
        self._labels.of_objects = about["of_objects"]
        self._fitted, self._declared, self._extra = (
            about["fitted"],
            about["declared"],
            about["extra"],
        )
        try:
            self._events.extend(_alert_from(json.loads(text)) for text, in about["alerts"])
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise errors.DamagedError(
                "the alerts of this learner are damaged: %.100s" % error
            ) from error

    def save(self, to: Any) -> None:
        """Writes to_bytes to a path (as a whole or not at all) or a binary file object."""
        data = self.to_bytes()
        if hasattr(to, "write"):
            to.write(data)
            return
        path = os.fspath(to)
        partial = "%s.%d.part" % (os.fsdecode(path), os.getpid())
        try:
            with open(partial, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)
        except OSError as error:
            if os.path.exists(partial):
                os.unlink(partial)
            # With the name that the caller knows; the class follows from the number.
            raise OSError(error.errno, error.strerror, path) from error

    @classmethod
    def load(cls: Type[S], source: Any) -> S:
        """Reads what save wrote, from a path or a binary file. Errors of from_bytes; OSError."""
        if hasattr(source, "read"):
            return cls.from_bytes(source.read())
        with open(source, "rb") as file:
            return cls.from_bytes(file.read())

    def __getstate__(self) -> Dict[str, Any]:
        return {"attributes": dict(vars(self)), "archive": self._pack(None)}

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, dict) or "archive" not in state or "attributes" not in state:
            raise errors.DamagedError(
                "this pickle is not one of a learner of svmstream, or of another version"
            )
        about, data = _archive.unpack(state["archive"])
        if about["class"] != self._kind:
            raise errors.WrongKindError(
                "this pickle is of %s, not of %s" % (about["class"], self._kind)
            )
        for name, value in state["attributes"].items():
            setattr(self, name, value)
        self._restore(about, data)


def _alert_from(event: Dict[str, Any]) -> Alert:
    """An alert of its event, from an archive."""

    def number(name: str) -> float:
        value = event.get(name)
        return float("nan") if value is None else float(value)

    return Alert(
        number=int(event.get("number", 0)),
        alert=int(event.get("alert", 0)),
        kind=event.get("kind", ""),
        state=event.get("state", ""),
        severity=event.get("severity"),
        rule=event.get("rule"),
        detector=event.get("detector"),
        ts=number("ts"),
        since=number("since"),
        p=number("p"),
        text=event.get("text", ""),
        event=event,
    )
