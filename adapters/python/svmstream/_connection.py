"""What both clients share: settings, addresses and requests, without any waiting."""
from __future__ import annotations

import os
import secrets
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union, cast

import zmq

from . import _curve, _packing, errors
from ._library import lib
from ._link import Control, Link, Steps
from ._outbox import Outbox, Result
from ._warning import warn


def patience(timeout: Any) -> None:
    """Raises SettingError for a timeout of a call that is no number of seconds; 0 does not wait."""
    if not isinstance(timeout, (int, float)) or timeout != timeout:
        raise errors.SettingError("timeout is %r; it is a number of seconds" % (timeout,))


class Connection:
    """The parameters of a client, its sockets, and how they are closed."""

    def __init__(self, address: str = "tcp://127.0.0.1", *, src: Optional[str] = None,
                 replay: Optional[bool] = None,
                 durable: bool = False, ctl: Optional[str] = None,
                 curve: Union[None, bool, _curve.Path] = None,
                 curve_server: Optional[_curve.Path] = None,
                 columns: Optional[Sequence[str]] = None,
                 missing: Optional[str] = None, timeout: float = 10.0,
                 context: Optional[Any] = None) -> None:
        if not isinstance(address, str) or not address:
            raise errors.WrongTypeError("address is %r; it is a string like tcp://host"
                                        % (address,))
        if not isinstance(timeout, (int, float)) or not 0 < timeout < 1e9:
            raise errors.SettingError("timeout is %r; it is a number of seconds above 0"
                                      % (timeout,))
        if replay and src is None:
            raise errors.SettingError("replay needs a name, src=, under which the process counts "
                                      "the rows")
        self._packer = _packing.RowPacker(missing)
        self._identity = _curve.identity(curve, curve_server)
        self._given, self._timeout = ctl or address, float(timeout)
        self._named = src is not None
        self._src = src if src is not None else "python-%d-%s" % (os.getpid(), secrets.token_hex(6))
        self._replay = self._named if replay is None else bool(replay)
        self._release = lib.SVS_OUTBOX_DURABLE if durable else lib.SVS_OUTBOX_SAFEST
        self._columns = list(columns) if columns is not None else None
        self._own = context is None
        # Also of an asyncio context plain sockets are used, which never block.
        self._context: Any = zmq.Context() if context is None else (
            zmq.Context.shadow(context.underlying))
        self._pid = os.getpid()
        self._closed = False
        self._addresses: Dict[str, Dict[str, Any]] = {}
        self._control: Optional[Control] = None
        self._link: Optional[Link] = None
        self._subscriptions: List[Any] = []

    def _check(self) -> None:
        if os.getpid() != self._pid:
            raise errors.UnavailableError(
                "this stream was opened by process %d, and sockets do not survive a fork: open "
                "one of its own in "
                "process %d" % (self._pid, os.getpid()))
        if self._closed:
            raise errors.UnavailableError("this stream is closed: open another one")

    def _address(self, key: str) -> str:
        """The address of `in`, `out` or `ctl`; raises what to do if the process has none that can
        be dialled.
        """
        entry = self._addresses.get(key)
        if entry is None:
            if "ctl" not in self._addresses:
                raise errors.UnavailableError("%s is the `in` of a process whose `ctl` was not "
                                              "found: give ctl=ADDRESS"
                                              % self._given)
            raise errors.UnavailableError("the process has no `%s`: start it with --%s ADDRESS"
                                          % (key, key))
        if key == "in" and entry.get("mode") != "router":
            raise errors.UnavailableError(
                "the process at %s runs with in.mode %s, which acknowledges nothing: start it "
                "with `svmstream run "
                "--in.mode router`" % (entry.get("address") or self._given, entry.get("mode")))
        return cast(str, entry["address"])

    def _open_link(self, settle: Callable[[int, Result], None]) -> Link:
        address = self._address("in")
        box = Outbox(self._src, self._replay, self._release, self._columns, settle)
        try:
            return Link(self._context, address, self._identity, box, self._timeout)
        except BaseException:
            box.free()
            raise

    def _request(self, op: str, keys: Mapping[str, Any], timeout: Optional[float] = None) -> Steps:
        self._address("ctl")
        assert self._control is not None
        if timeout is not None:
            patience(timeout)
        request = {"op": op}
        request.update((k[:-1] if k.endswith("_") else k, v) for k, v in keys.items()
                       if v is not None)
        seconds = self._timeout if timeout is None else timeout
        return self._control.request(_packing.pack(request), seconds)

    def _found(self, addresses: Dict[str, Dict[str, Any]]) -> None:
        self._addresses = addresses
        if "ctl" in addresses:
            self._control = Control(self._context, addresses["ctl"]["address"], self._identity)

    def _warn(self) -> None:
        """Reports rows that a process has lost although it had acknowledged them."""
        assert self._link is not None
        losses, self._link.box.losses = self._link.box.losses, []
        for text in losses:
            warn(text, RuntimeWarning)

    def _raise_moved(self) -> None:
        assert self._link is not None
        moved, self._link.box.moved = self._link.box.moved, None
        if moved is not None:
            raise moved

    def __repr__(self) -> str:
        return "<%s of %s%s%s>" % (
            type(self).__name__, self._given, ", src %s" % self._src if self._named else "",
            ", closed" if self._closed else "")

    def _release_all(self) -> None:
        """Closes every socket; in a child after a fork it only lets go of them."""
        if self._closed:
            return
        self._closed = True
        if os.getpid() != self._pid:
            return
        for subscription in list(self._subscriptions):
            subscription._dialer.close()
        if self._link is not None:
            self._link.close()
        if self._control is not None:
            self._control.close()
        if self._own:
            self._context.term()

    @property
    def addresses(self) -> Dict[str, Dict[str, Any]]:
        """{"in", "out", "ctl": {"address", "mode"}} of the process."""
        return {key: dict(entry) for key, entry in self._addresses.items()}

    @property
    def src(self) -> str:
        """The name under which the process counts the rows of this producer."""
        return self._src
