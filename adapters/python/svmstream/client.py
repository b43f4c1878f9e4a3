"""A running `svmstream run` as an object: rows in, scores back, events, requests.

    with Stream("tcp://127.0.0.1") as stream:
        score = stream.send({"temperature": 21.5, "machine": "press-03"}, "ok")
        print(score.yhat, score.proba)

`Stream` blocks and starts no thread; `AsyncStream` (aio) is the same for asyncio.
"""
from __future__ import annotations

import math
import os
import threading
import time
import warnings
from collections import deque
from typing import (Any, Callable, Deque, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple,
                    Type, TypeVar, Union, cast)

import zmq

from . import _packing, errors, wire
from ._connection import Connection
from ._events import Subscription, topics
from ._find import find
from ._lazy import Lazy
from ._link import Link, Steps
from ._outbox import MovedError, Result

__all__ = ["Events", "MovedError", "Stream"]

E = TypeVar("E", bound=wire.Event)
READ_ROWS, READ_SECONDS = 16, 0.001  # sent, or passed, until replies are read again


class Events(Subscription[E]):
    """An iterator over events. It ends when nothing arrived for `timeout` seconds, and can then be
    continued.
    """

    def __iter__(self) -> "Events[E]":
        return self

    def __next__(self) -> E:
        event = cast(Optional[E], drive(self._next_steps()))
        if event is None:
            raise StopIteration
        return event

    def __enter__(self) -> "Events[E]":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _poll(sockets: Sequence[Any], seconds: float) -> None:
    """Until one of the sockets is readable, or the time is over."""
    poller = zmq.Poller()
    for socket in sockets:
        poller.register(socket, zmq.POLLIN)
    poller.poll(None if seconds == math.inf else max(0, math.ceil(1000 * seconds)))


def drive(steps: Steps) -> Any:
    """Runs steps with blocking waits."""
    try:
        while True:
            sockets, seconds = next(steps)
            _poll(sockets, seconds)
    except StopIteration as end:
        return end.value
    finally:
        steps.close()


class Stream(Connection):
    """A running process: rows in, scores back. A host alone stands for the default ports.

    address: any one of its addresses: tcp://host, tcp://host:port (of `ctl`; of `in` or `out` where
      the three ports follow each other, as the defaults do), ipc:///path of `ctl`.
    ctl: the address of `ctl`, where it is found in no other way.
    src: a name for this producer, under which the process counts its rows. A producer that is
      started again continues with row `stream.wanted`, or at `stream.place`. Without a name, one is
      invented for the life of this object.
    replay: rows can be read again from any number; the default with `src`. Should the process need
      rows again, the next call raises MovedError, whose `wanted` is where to go on. False keeps
      rows until they are on its disk.
    durable: only to a process that keeps its state, and rows are kept until they are on its disk.
    curve, curve_server: key file of this end, and public key (or its file) of the process, as in
      `svmstream feed`.
    columns: names of the values of rows that are arrays.
    missing: mean, zero, drop or refuse, where NaN and None are missing values. The default takes
      the mean for None and refuses NaN.
    timeout: seconds without progress until a call gives up.
    context: a zmq.Context to use (also one of zmq.asyncio); it is not terminated.

    Calls may come from several threads, which take turns. After a fork the child opens a Stream of
    its own.
    """

    def __init__(self, address: str = "tcp://127.0.0.1", **options: Any) -> None:
        self._closed = True  # until there is something to close
        super().__init__(address, **options)
        self._lock = threading.RLock()
        self._results: Dict[int, Optional[Result]] = {}
        try:
            self._found(drive(find(self._context, self._given, self._identity, self._timeout)))
        except BaseException:
            self._release_all()
            raise

    # ---- life

    def close(self, wait: bool = True) -> None:
        """Closes everything. wait: rows under way are delivered first (up to the timeout, which
        then raises).
        """
        try:
            if wait and not self._closed and os.getpid() == self._pid and self._link is not None:
                self.flush()
                self._leave()
        finally:
            self._release_all()

    def _leave(self) -> None:
        """A name that was invented is not used again: its slot in the process is freed."""
        link = self._link
        if link is None or self._named or link.box.status().put == 0:
            return
        link.box.leave()
        end = time.monotonic() + 1.0
        while not link.box.done and time.monotonic() < end:
            link.turn()
            if not link.box.done:
                _poll(link.dialer.sockets, min(link.wait(), 0.1))

    def __enter__(self) -> "Stream":
        self._check()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: Any) -> None:
        self.close(wait=kind is None)

    def __del__(self) -> None:
        if not getattr(self, "_closed", True) and os.getpid() == self._pid:
            warnings.warn("a svmstream.Stream was not closed: use `with Stream(...)`",
                          ResourceWarning, source=self)
            self._release_all()

    # ---- rows

    def _settle(self, number: int, result: Result) -> None:
        if number in self._results:  # else nobody waits for it any more
            self._results[number] = result

    def _ready(self) -> Link:
        """The link, once it is known which row the process wants (with replay)."""
        self._check()
        if self._link is None:
            self._link = self._open_link(self._settle)
        self._link.begin()
        return self._link

    def _until(self, link: Link, condition: Callable[[], bool]) -> None:
        """Sends and receives until the condition holds. Raises when nothing moves any more."""
        link.send()
        link.receive()
        while True:
            if link.box.losses:
                self._warn()
            if condition():  # before any waiting: no further reply may be due
                return
            link.check()
            _poll(link.dialer.sockets, link.wait())
            link.turn()

    def _put(self, link: Link, row: bytes, cursor: Union[None, bytes, str]) -> int:
        number: Optional[int] = None

        def attempt() -> bool:
            nonlocal number
            self._raise_moved()
            number = link.box.put(row, cursor)
            return number is not None

        if not attempt():
            self._until(link, attempt)
        assert number is not None
        self._results[number] = None
        return number

    def _result(self, link: Link, number: int) -> Result:
        """Waits for the fate of a row. If that fails the row stays in the outbox, and nobody waits
        for it.
        """
        try:
            self._until(link, lambda: self._results[number] is not None)
            return cast(Result, self._results[number])
        finally:
            del self._results[number]

    def send(self, x: Any, y: Any = None, *, id: Union[None, int, str] = None, ts: Any = None,
             w: float = 1.0,
             key: Union[None, int, str] = None,
             cursor: Union[None, bytes, str] = None) -> wire.Score:
        """Sends a row and returns its score, which was made before the row was learned.

        x: a dict of numbers, words and None (missing), a sequence, or an array of numpy. Without y
        the row is scored and not learned; a label may follow (`label`). ts: seconds since 1970 or a
        datetime. cursor: where the producer's source continues after this row (up to 64 bytes), see
        `place`.

        A row that is refused raises the exception of its code. TimeoutError: the row stays in the
        outbox and is delivered by the next call when the process is back; do not send it again.
        """
        with self._lock:
            self._check()
            row = self._packer.row(x, y, id, ts, w, key)
            link = self._ready()
            result = self._result(link, self._put(link, row, cursor))
        if isinstance(result, errors.SvmstreamError):
            raise result
        return result

    def send_many(self, rows: Any, y: Any = None, *, id: Any = None, ts: Any = None, w: Any = None,
                  key: Any = None,
                  batch: int = 64,
                  in_flight: int = 64) -> Iterator[Union[wire.Score, errors.SvmstreamError]]:
        """Sends rows and yields their scores, in order: it sends as its result is iterated.

        rows: an array of two dimensions, a DataFrame, or an iterable of x, (x, y), (x, y, {"id":
        ..., "ts": ...}) or Sample. y, id, ts, w, key: one for each row. batch: rows a message;
        in_flight: messages without an answer. For rows from a source that is slower than the
        process take batch=1: rows are read until a batch is full.

        A row that is refused does not end the stream: its exception is yielded in its place, not
        raised. Process failures are raised, as in `send`.
        """
        if not 1 <= batch <= 4096 or not 1 <= in_flight <= 100_000 or batch * in_flight > 500_000:
            raise errors.SettingError("batch is 1 to 4096 rows, in_flight 1 to 100000 messages, "
                                      "500000 rows in all")
        self._check()
        source = _packing.RowPacker(self._packer.missing).rows(rows, y, id, ts, w, key)
        return Lazy(self._many(source, batch, batch * in_flight))

    def _many(self, source: Iterator[Union[bytes, errors.SvmstreamError]], batch: int,
              limit: int) -> Iterator[Union[wire.Score, errors.SvmstreamError]]:
        order: Deque[Union[int, errors.SvmstreamError]] = deque()
        results, more, unread, read = self._results, True, 0, 0.0
        try:
            # Nothing can be sent before: a slow source would hold up its first row.
            with self._lock:
                link = self._ready()
                self._until(link, lambda: bool(link.box.status().greeted))
            while more or order:
                ready: List[Result] = []
                with self._lock:
                    self._check()
                    link = cast(Link, self._link)
                    if not order:
                        link.begin()
                    while more and limit - len(order) >= batch:
                        more = self._fill(link, source, batch, order)
                        # Replies are read several at once, unless the rows come slowly.
                        unread, now = unread + batch, time.monotonic()
                        if unread >= READ_ROWS or now - read > READ_SECONDS:
                            unread, read = 0, now
                            link.receive()
                            if order and not self._open(order[0]):
                                break
                    if order and self._open(order[0]):
                        self._until(link, lambda: not self._open(order[0]))
                    while order:
                        head = order[0]
                        result = results[head] if isinstance(head, int) else head
                        if result is None:
                            break
                        if isinstance(head, int):
                            del results[head]
                        ready.append(result)
                        order.popleft()
                yield from ready
        finally:
            for number in order:
                if isinstance(number, int):
                    results.pop(number, None)

    def _open(self, head: Union[int, errors.SvmstreamError]) -> bool:
        return isinstance(head, int) and self._results[head] is None

    def _fill(self, link: Link, source: Iterator[Union[bytes, errors.SvmstreamError]], batch: int,
              order: Deque[Union[int, errors.SvmstreamError]]) -> bool:
        """Puts one batch and sends it. False: the rows have ended."""
        put, begun, box, results = 0, time.monotonic(), link.box, self._results
        for row in source:
            if isinstance(row, errors.SvmstreamError):
                order.append(row)
            else:
                try:
                    number = box.put(row) if box.moved is None else None
                    if number is None:  # has to wait, or to raise
                        number = self._put(link, row, None)
                    results[number] = None
                    order.append(number)
                except errors.InputError as error:
                    order.append(error)
            put += 1
            if put >= batch:
                link.send()
                return True
            # A slow source: rows are not held back.
            if put & 15 == 0 and time.monotonic() - begun > 0.005:
                link.turn()
                begun = time.monotonic()
        link.turn()
        return False

    def flush(self) -> None:
        """Waits until every row is answered for, and on disk if the process keeps its state."""
        with self._lock:
            link = self._ready()
            if link.box.status().put > 0:
                self._until(link, lambda: link.box.delivered)

    @property
    def wanted(self) -> int:
        """The number of the row to send next, from 0. With `src` (replay): of the first that the
        process lacks.
        """
        with self._lock:
            link = self._ready()
            self._until(link, lambda: bool(link.box.status().greeted))
            link.box.moved = None
            return link.box.wanted

    @property
    def place(self) -> Optional[bytes]:
        """The `cursor` of the last row that the process has of this source; None: it has none."""
        with self._lock:
            link = self._ready()
            self._until(link, lambda: bool(link.box.status().greeted))
            return link.box.place

    def figures(self) -> Dict[str, int]:
        """What the outbox counts: put, kept, acked, refused, sent, resent, lost and others
        (outbox.h).
        """
        with self._lock:
            return self._ready().box.figures()

    # ---- events

    def _subscribe(self, names: Tuple[str, ...], timeout: Optional[float],
                   key: Union[None, int, str]) -> Any:
        with self._lock:
            self._check()
            stream = self.status()["stream"] if key is not None else ""
            events: Events[Any] = Events(self, topics(names, stream, key), timeout)
            try:
                drive(events._begin())
                if "ctl" in self._addresses:  # its answer shows that the subscription has arrived
                    self.command("status")
            except errors.NotAllowedError:
                raise
            except BaseException:
                events.close()
                raise
            return events

    def events(self, *names: str, timeout: Optional[float] = None,
               key: Union[None, int, str] = None) -> Events[wire.Event]:
        """Events of these kinds (score, model, bank, alert, error, stats, sums, prior; none: all), from now on.

        An iterator; `lost` counts what did not arrive. It ends after `timeout` seconds without an
        event (None: never), and may then be continued. key: only those of this key of a stream with
        keys.
        """
        return cast("Events[wire.Event]", self._subscribe(names, timeout, key))

    def scores(self, *, timeout: Optional[float] = None,
               key: Union[None, int, str] = None) -> Events[wire.Score]:
        """The scores of all rows, of every producer; see `events`."""
        return cast("Events[wire.Score]", self._subscribe(("score",), timeout, key))

    def models(self, *, timeout: Optional[float] = None,
               key: Union[None, int, str] = None) -> Events[wire.ModelEvent]:
        """The models that are published, beginning with the last one; see `events` and
        `Model.from_event`.
        """
        return cast("Events[wire.ModelEvent]", self._subscribe(("model",), timeout, key))

    def alerts(self, *, timeout: Optional[float] = None,
               key: Union[None, int, str] = None) -> Events[wire.Alert]:
        """The alerts that open, get worse and close; see `events`."""
        return cast("Events[wire.Alert]", self._subscribe(("alert",), timeout, key))

    # ---- requests

    def command(self, op: str, *, timeout: Optional[float] = None, **keys: Any) -> Dict[str, Any]:
        """Sends any request of `svmstream help protocol`, for example command("refit"), and returns
        the reply.

        Keys that are None are left out. A key that is a word of Python, or `op` or `timeout`, gets
        an underscore after it: command("mute", for_="2h"). A failed request raises the exception of
        its code.
        """
        with self._lock:
            self._check()
            return cast(Dict[str, Any], drive(self._request(op, keys, timeout)))

    def status(self, key: Union[None, int, str] = None) -> wire.Status:
        """Counters, quality and figures of the process, or of one key."""
        return wire.Status(self.command("status", key=key))

    def config(self, settings: Optional[Mapping[str, Any]] = None, **more: Any) -> Dict[str, Any]:
        """All settings with their values. Those given are changed first, all or none: config({"C":
        10}).
        """
        given = _packing.settings(settings, more)
        return cast(Dict[str, Any], self.command("config", set=given or None)["config"])

    def label(self, id: Union[int, str], y: Any, key: Union[None, int, str] = None) -> None:
        """The label of a row that was sent without one, by its id: it is learned now.

        KeyError: no row with this id waits for a label. It never arrived, has its label, or was
        dropped by labels.ttl or labels.max. After a TimeoutError call again: the label was learned
        or not, and KeyError then says that it was.
        """
        self.command("label", id=id, y=y, key=key)

    def forget(self, id: Union[int, str], key: Union[None, int, str] = None) -> int:
        """Removes every row with this id that is held or waits for a label; returns their number.

        Exact with method alsvm. With auto some members keep what they learned of the row
        (`svmstream help guarantees`). KeyError: no such row is held.
        """
        return int(self.command("forget", id=id, key=key)["count"])

    def keys(self, **filters: Any) -> List[Dict[str, Any]]:
        """The keys of a stream that has some: sort=, limit=, like=, prefix=, open=, silent=, rows=.
        """
        return cast(List[Dict[str, Any]], self.command("keys", **filters)["keys"])

    def score(self, x: Any, key: Union[None, int, str] = None) -> wire.Score:
        """The score of a row that is neither learned nor counted."""
        sample = wire.unpack_plain(self._packer.row(x))
        return wire.Score(self.command("score", sample=sample, key=key))

    def model(self, key: Union[None, int, str] = None) -> Any:
        """The current model, as a Model."""
        from .model import Model  # pylint: disable=import-outside-toplevel
        return Model.from_event(self.command("model", key=key)["model"])

    def publish(self, key: Union[None, int, str] = None) -> None:
        """Model, bank, stats and, with publish.sums, sums are published now."""
        self.command("publish", key=key)
