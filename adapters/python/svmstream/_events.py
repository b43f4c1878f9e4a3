"""Subscriptions: the events of a process in order, for both clients, without any waiting."""
from __future__ import annotations

import math
import os
import time
from typing import Generic, Optional, Tuple, TypeVar, Union, cast

import zmq

from . import errors, wire
from ._connection import Connection, patience
from ._link import Dialer, Steps

E = TypeVar("E", bound=wire.Event)
QUEUE = 10_000  # events that wait for a subscriber; what is beyond is lost, which `lost` counts


def topics(names: Tuple[str, ...], stream: str, key: Union[None, int, str]) -> Tuple[bytes, ...]:
    """Prefixes for a subscription; "score" is "score."."""
    if not all(isinstance(name, str) for name in names):
        raise errors.WrongTypeError("a topic is a string such as score or alert.")
    try:
        "".join(map(str, (*names, key))).encode()
    except UnicodeEncodeError as reason:
        raise errors.WrongTypeError("a topic or key that is no valid Unicode: %s" % reason) from None
    if key is None:
        return tuple((name if "." in name or not name else name + ".").encode() for name in names
                     or ("",))
    safe = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
    escaped = "".join(chr(b) if b in safe else "%%%02X" % b for b in str(key).encode())
    return tuple(("%s.%s.%s." % (name.rstrip("."), stream, escaped)).encode() for name in names)


class Subscription(Generic[E]):
    """Events of a process, in order. `lost`: how many of its topics were lost on the way, by their
    `seq`.
    """

    def __init__(self, owner: Connection, prefixes: Tuple[bytes, ...],
                 timeout: Optional[float]) -> None:
        if timeout is not None:
            patience(timeout)
        self._owner, self._timeout, self._losses = owner, timeout, wire.Losses()
        self._dialer = Dialer(owner._context, zmq.SUB, owner._address("out"), owner._identity,
                              prefixes, rcvhwm=QUEUE)
        owner._subscriptions.append(self)

    @property
    def lost(self) -> int:
        """Events that did not arrive: this subscriber, or the network, was too slow, or the process
        was replaced.
        """
        return self._losses.lost

    def _begin(self) -> Steps:
        """Steps until the connection is there."""
        end = time.monotonic() + self._owner._timeout
        while True:
            self._dialer.look()
            left = end - time.monotonic()
            if self._dialer.introduced:
                return
            if left <= 0 or self._dialer.hopeless:
                error = errors.NotAllowedError if self._dialer.hopeless else errors.TimedOutError
                raise error(self._dialer.why("out", "subscribe"))
            yield [self._dialer.monitor], left

    def _take(self) -> Optional[E]:
        """The next event that is there, or None."""
        self._owner._check()
        if self._dialer.socket.closed:
            raise errors.UnavailableError("this subscription is closed: begin another one")
        self._dialer.look()
        while True:
            try:
                frames = self._dialer.socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return None
            if len(frames) != 2:
                raise errors.FileError("%s: what publishes there is not svmstream: a message has "
                                       "%d frames" % (self._dialer.address, len(frames)))
            event = wire.event(*frames)
            if self._losses.newer(event):
                return cast(E, event)

    def _next_steps(self) -> Steps:
        """Steps that return the next event, or None when no event arrived within the timeout."""
        end = math.inf if self._timeout is None else time.monotonic() + self._timeout
        while True:
            event = self._take()
            left = end - time.monotonic()
            if event is not None or left <= 0:
                return event
            yield self._dialer.sockets, left

    def close(self) -> None:
        """Ends the subscription."""
        if self in self._owner._subscriptions:
            self._owner._subscriptions.remove(self)
            if os.getpid() == self._owner._pid and not self._owner._closed:
                self._dialer.close()
