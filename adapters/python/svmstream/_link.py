"""Sockets that report why nothing answers, and the outbox on its DEALER socket.

Nothing here waits: a caller polls `sockets` for at most `wait()` seconds, with blocking calls
(client) or in an event loop (aio), and then calls `turn`. Operations of several steps are
generators that yield (sockets, seconds) where they have to wait, so that both clients share them.
"""
from __future__ import annotations

import itertools
import struct
import time
from typing import Any, Dict, Generator, List, Optional, Tuple

import zmq

from . import errors, wire
from ._curve import Identity
from ._outbox import HOPELESS, Outbox

Steps = Generator[Tuple[List[Any], float], None, Any]

REFUSED = (zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL |
           zmq.EVENT_HANDSHAKE_FAILED_AUTH)
WATCHED = zmq.EVENT_CONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED | REFUSED
BEAT_MS = 5000  # between heartbeats, so that a vanished host is noticed
# As plain numbers: the enums of pyzmq cost more than the calls.
EVENTS, READABLE, MORE = int(zmq.EVENTS), int(zmq.POLLIN), int(zmq.RCVMORE)
AT_ONCE = int(zmq.NOBLOCK)
_names = itertools.count()


def refusal(reply: Dict[Any, Any], prefix: str = "") -> errors.SvmstreamError:
    """The exception of a reply with `error`."""
    code = reply.get("code")
    return errors.by_code(code if isinstance(code, str) else "", prefix + str(reply["error"]))


class Dialer:
    """A connected socket with a monitor: how far did its connection ever get?"""

    def __init__(self, context: Any, kind: int, address: str, identity: Optional[Identity],
                 subscribe: Tuple[bytes, ...] = (), **options: int) -> None:
        self.address, self._identity = address, identity
        self.accepted = self.introduced = self.connected = False
        self.refusals = 0
        self.monitor: Any = None
        self.socket: Any = context.socket(kind)
        try:
            self.socket.linger = 0
            self.socket.reconnect_ivl, self.socket.reconnect_ivl_max = 50, 1000
            self.socket.heartbeat_ivl = BEAT_MS
            for name, value in options.items():
                setattr(self.socket, name, value)
            if address.startswith("tcp://["):
                self.socket.ipv6 = True
            if identity is not None:
                identity.apply(self.socket)
            for topic in subscribe:
                self.socket.setsockopt(zmq.SUBSCRIBE, topic)
            name = "inproc://svmstream.monitor.%d.%d" % (id(self), next(_names))
            self.monitor = context.socket(zmq.PAIR)
            self.socket.monitor(name, WATCHED)
            self.monitor.linger = 0
            self.monitor.rcvhwm = 0  # libzmq's thread would wait for a reader of a full queue
            self.monitor.connect(name)
            self.socket.connect(address)
        except zmq.ZMQError as reason:
            self.close()
            raise errors.InputError("%s cannot be dialled: %s; an address is like tcp://host:5557 "
                                    "or ipc:///path"
                                    % (address, reason)) from None

    @property
    def sockets(self) -> List[Any]:
        return [self.socket, self.monitor]

    def look(self) -> bool:
        """Takes the monitor's events. True: a connection that was complete has broken."""
        broken = False
        while self.monitor.getsockopt(EVENTS) & READABLE:
            head = self.monitor.recv_multipart(zmq.NOBLOCK)[0]
            event = struct.unpack_from("=H", head)[0]
            if event == zmq.EVENT_CONNECTED:
                self.accepted = True
            elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self.introduced = self.connected = True
            else:
                self.refusals += not self.introduced
                broken = broken or (event == zmq.EVENT_DISCONNECTED and self.connected)
                self.connected = False
        return broken

    @property
    def hopeless(self) -> bool:
        """With keys, a handshake that fails again and again will not succeed."""
        return self._identity is not None and not self.introduced and self.refusals > 3

    def why(self, what: str, role: str) -> str:
        """The likely reason why nothing answers, by the stage that the connection reached."""
        if not self.accepted:
            return ("no process listens at %s: check that `svmstream run` runs there with this `%s`"
                    % (self.address, what))
        if not self.introduced and self._identity is not None:
            return ("%s refused the connection: check that curve_server is its key, that its allow "
                    "file has your key with the role %s, and that it runs with curve" % (self.address, role))
        if not self.introduced:
            return ("a process listens at %s but does not answer: check that this is its `%s`, that "
                    "it runs without CURVE (else give curve= and curve_server=), and is not stuck" % (self.address, what))
        return "%s %s" % (self.address, "does not answer" if self.connected else "has disconnected")

    def close(self) -> None:
        """The monitor ends first: an event without a reader would block libzmq's thread for ever.
        """
        if self.monitor is not None and not self.socket.closed:
            self.socket.monitor(None, 0)
        for socket in (self.monitor, self.socket):
            if socket is not None:
                socket.close(0)


class Control:
    """Requests to `ctl`, one after the other over one socket, which is dropped when a reply is
    missing.
    """

    def __init__(self, context: Any, address: str, identity: Optional[Identity]) -> None:
        self._context, self.address, self._identity = context, address, identity
        self._dialer: Optional[Dialer] = None

    def request(self, message: bytes, timeout: float) -> Steps:
        """Steps that return the reply's map, or raise the error that it states."""
        dialer = self._dialer or Dialer(self._context, zmq.DEALER, self.address, self._identity)
        self._dialer = None  # kept only if the exchange is complete, also where a task is cancelled
        end = time.monotonic() + timeout
        try:
            dialer.socket.send(message, zmq.NOBLOCK)
            while True:
                dialer.look()
                try:
                    reply = wire.unpack_map(dialer.socket.recv_multipart(zmq.NOBLOCK)[-1],
                                            self.address)
                    break
                except zmq.Again:
                    pass
                left = end - time.monotonic()
                if left <= 0 or dialer.hopeless:
                    error = errors.NotAllowedError if dialer.hopeless else errors.TimedOutError
                    raise error("%s (%s after %.3g s)"
                                % (dialer.why("ctl", "control"), "no answer", timeout - left))
                yield dialer.sockets, left
            self._dialer = dialer
        finally:
            if self._dialer is not dialer:
                dialer.close()
        if "error" in reply:
            raise refusal(reply)
        return reply

    def close(self) -> None:
        if self._dialer is not None:
            self._dialer.close()


class Link:
    """The outbox and its socket."""

    def __init__(self, context: Any, address: str, identity: Optional[Identity], box: Outbox,
                 timeout: float) -> None:
        self.box, self._timeout = box, timeout
        self.dialer = Dialer(context, zmq.DEALER, address, identity)
        self._blocked = False
        self._marks: Tuple[int, ...] = ()
        self.moved = time.monotonic()  # the last progress

    def turn(self) -> None:
        """Receives, looks at the connection, and sends what the outbox has."""
        self.receive()
        if self.dialer.look():
            self.box.broken(time.monotonic())
        self.send()

    def receive(self) -> None:
        """Takes the replies that are there."""
        socket = self.dialer.socket
        # Asking first is cheaper than the exception of a socket that has nothing.
        while socket.getsockopt(EVENTS) & READABLE:
            reply = socket.recv(AT_ONCE)
            while socket.getsockopt(MORE):
                reply = socket.recv(AT_ONCE)
            try:
                self.box.reply(reply, time.monotonic())
            except errors.InputError:
                raise errors.FileError(
                    "%s: the peer is not svmstream" % self.dialer.address) from None

    def send(self) -> None:
        """Sends what the outbox has, as far as the socket takes it."""
        box, socket, now = self.box, self.dialer.socket, time.monotonic()
        self._blocked = False
        while not self._blocked:
            frame = box.frame(now)
            if frame is None:
                break
            try:
                socket.send(frame, AT_ONCE)
                box.sent(now)
            except zmq.Again:
                self._blocked = True
        box.note_given_up()

    def wait(self) -> float:
        """Seconds until `turn` has something to do without a reply."""
        return 0.05 if self._blocked else min(self.box.wait(time.monotonic()), self._timeout,
                                              3600.0)

    def begin(self) -> None:
        """The patience of a caller begins now."""
        self.moved = time.monotonic()

    def check(self) -> None:
        """Raises if there was no progress for the timeout, with the likely reason; at once where
        waiting is no cure.
        """
        f, now = self.box.status(), time.monotonic()
        marks = (f.acked, f.refused, f.dropped, f.taken, f.durable, int(f.greeted))
        if marks != self._marks:
            self._marks, self.moved = marks, now
        code, reason = self.box.later or ("", "")
        address = self.dialer.address
        if code in HOPELESS:
            if code == "not_durable":
                raise errors.UnavailableError("%s cannot promise durability: %s" % (address, reason))
            raise errors.by_code(code, reason)
        if self.dialer.hopeless:
            raise errors.NotAllowedError(self.dialer.why("in", "ingest"))
        if now - self.moved < self._timeout:
            return
        kept = ""
        if f.kept:
            kept = ("; %d rows wait in the outbox and are sent as soon as it answers: do not send "
                    "them "
                    "again" % f.kept)
        if code:
            error: errors.SvmstreamError = errors.by_code(code, "%s refuses samples for now: %s%s"
                                                          % (address, reason, kept))
        else:
            error = errors.TimedOutError("%s (no acknowledgement for %.3g s%s)"
                                         % (self.dialer.why("in", "ingest"), self._timeout, kept))
        self.moved = now  # the next call has patience of its own
        raise error

    @property
    def busy(self) -> bool:
        """Has the outbox rows without a result?"""
        return self.box.waiting > 0

    def close(self) -> None:
        self.dialer.close()
        self.box.free()
