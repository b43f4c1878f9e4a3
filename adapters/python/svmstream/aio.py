"""The client for asyncio: `AsyncStream` is `Stream` with `await`.

    async with AsyncStream("tcp://127.0.0.1") as stream:
        score = await stream.send([1.0, 2.0], "ok")
        async for alert in stream.alerts():
            print(alert.text)

Several tasks may send at once: their rows share one connection, and one task of this object passes
frames and replies while rows are under way. A task that is cancelled while it waits leaves its row
in the outbox, where it is delivered with the others.
"""
from __future__ import annotations

import asyncio
import math
import os
import warnings
from collections import deque
from typing import (Any, AsyncIterable, AsyncIterator, Callable, Deque, Dict, Iterator, List,
                    Mapping, Optional, Sequence,
                    Tuple, Type, TypeVar, Union, cast)

import zmq

from . import _packing, errors, wire
from ._connection import Connection
from ._events import Subscription, topics
from ._find import find
from ._lazy import AsyncLazy
from ._link import Link, Steps
from ._outbox import Result

__all__ = ["AsyncEvents", "AsyncStream"]

E = TypeVar("E", bound=wire.Event)


async def wait(sockets: Sequence[Any], seconds: float,
               wake: Optional[asyncio.Event] = None) -> None:
    """Until one of the sockets has a message, `wake` is set, or the time is over.

    A descriptor of ZeroMQ becomes readable when something has changed, not when a message is there:
    the state of each socket is read every time.
    """
    loop = asyncio.get_running_loop()
    event = wake or asyncio.Event()
    fds = [socket.getsockopt(zmq.FD) for socket in sockets]
    for fd in fds:
        loop.add_reader(fd, event.set)
    try:
        if any(socket.getsockopt(zmq.EVENTS) & zmq.POLLIN for socket in sockets):
            await asyncio.sleep(0)  # others have their turn, however fast messages arrive
            return
        await asyncio.wait_for(event.wait(), None if seconds == math.inf else max(0.0, seconds))
    except asyncio.TimeoutError:
        pass
    finally:
        event.clear()
        for fd in fds:
            loop.remove_reader(fd)


async def drive(steps: Steps) -> Any:
    """Runs steps without blocking the loop."""
    try:
        while True:
            sockets, seconds = next(steps)
            await wait(sockets, seconds)
    except StopIteration as end:
        return end.value
    finally:
        steps.close()


class AsyncEvents(Subscription[E]):
    """An asynchronous iterator over events; see `Events`. `await events.ready()`: from here on none
    is missed.
    """

    def __init__(self, owner: "AsyncStream", names: Tuple[str, ...], timeout: Optional[float],
                 key: Union[None, int, str]) -> None:
        self._stream, self._what, self._begun = owner, (names, timeout, key), False
        self._losses = wire.Losses()
        self._start = asyncio.Lock()

    async def ready(self) -> "AsyncEvents[E]":
        """Subscribes, and waits until the process knows. Iteration does so by itself."""
        async with self._start:
            if not self._begun:
                names, timeout, key = self._what
                stream = self._stream
                await stream.open()
                name = (await stream.status())["stream"] if key is not None else ""
                Subscription.__init__(self, stream, topics(names, name, key), timeout)
                try:
                    await drive(self._begin())
                    if "ctl" in stream._addresses:
                        await stream.command("status")
                except BaseException:
                    self.close()
                    raise
                self._begun = True
        return self

    def close(self) -> None:
        """Ends the subscription."""
        if hasattr(self, "_dialer"):
            super().close()

    def __aiter__(self) -> "AsyncEvents[E]":
        return self

    async def __anext__(self) -> E:
        if not self._begun:
            await self.ready()
        event = cast(Optional[E], await drive(self._next_steps()))
        if event is None:
            raise StopAsyncIteration
        return event

    async def __aenter__(self) -> "AsyncEvents[E]":
        return await self.ready()

    async def __aexit__(self, *_: Any) -> None:
        self.close()


class AsyncStream(Connection):
    """A running process, for asyncio: rows in, scores back. The parameters are those of `Stream`;
    it is opened by `async with`, by `await stream.open()`, or by the first call.
    """

    def __init__(self, address: str = "tcp://127.0.0.1", **options: Any) -> None:
        self._closed = True  # until there is something to close
        super().__init__(address, **options)
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._opening: Optional[asyncio.Lock] = None
        self._requesting: Optional[asyncio.Lock] = None
        self._wake: Optional[asyncio.Event] = None
        self._moved: Optional[asyncio.Event] = None
        self._pump_task: Optional["asyncio.Task[None]"] = None
        self._results: Dict[int, "asyncio.Future[Result]"] = {}
        self._watchers: List[Tuple[Callable[[], bool], "asyncio.Future[None]"]] = []

    # ---- life

    async def open(self) -> "AsyncStream":
        """Finds the addresses of the process."""
        self._check()
        loop = asyncio.get_running_loop()
        if self._opening is not None and loop is not self._loop:
            raise errors.UnavailableError("this stream was opened in another event loop: open one "
                                          "of its own in each loop")
        if self._opening is None:  # made here, where a loop runs
            self._loop = loop
            self._opening, self._requesting = asyncio.Lock(), asyncio.Lock()
            self._wake = asyncio.Event()
        async with self._opening:
            self._check()
            if not self._addresses:
                self._found(await drive(find(self._context, self._given, self._identity,
                                             self._timeout)))
        return self

    async def close(self, wait: bool = True) -> None:
        """Closes everything. wait: rows under way are delivered first (up to the timeout, which
        then raises).
        """
        try:
            if wait and not self._closed and os.getpid() == self._pid and self._link is not None:
                await self.flush()
                link = self._link
                if not self._named and link.box.status().put > 0:
                    link.box.leave()
                    try:
                        await asyncio.wait_for(self._until(lambda: link.box.done), 1.0)
                    except (asyncio.TimeoutError, errors.SvmstreamError):
                        pass  # a courtesy
        finally:
            if self._loop is asyncio.get_running_loop():  # else nobody waits there any more
                if self._pump_task is not None and os.getpid() == self._pid:
                    self._pump_task.cancel()
                    await asyncio.gather(self._pump_task, return_exceptions=True)
                self._fail(errors.UnavailableError(
                    "this stream was closed while rows were under way"))
            self._release_all()

    async def __aenter__(self) -> "AsyncStream":
        try:
            return await self.open()
        except BaseException:
            self._release_all()
            raise

    async def __aexit__(self, kind: Optional[Type[BaseException]], *_: Any) -> None:
        await self.close(wait=kind is None)

    def __del__(self) -> None:
        if not getattr(self, "_closed", True) and os.getpid() == self._pid:
            warnings.warn("a svmstream.AsyncStream was not closed: use `async with "
                          "AsyncStream(...)`", ResourceWarning,
                          source=self)
            self._release_all()

    # ---- the pump: one task that owns the socket while something is under way

    def _settle(self, number: int, result: Result) -> None:
        future = self._results.pop(number, None)
        if future is not None and not future.done():
            future.set_result(result)

    def _fail(self, error: BaseException) -> None:
        """Every caller that waits gets the error; rows stay in the outbox."""
        results, self._results = self._results, {}
        watchers, self._watchers = self._watchers, []
        waiting: List[Any] = [*results.values(), *(future for _, future in watchers)]
        for future in waiting:
            if not future.done():
                future.set_exception(error)

    async def _pump(self) -> None:
        link = cast(Link, self._link)
        try:
            link.begin()
            while True:
                link.turn()
                self._warn()
                # Also while nobody waits for rows any more, they are delivered.
                for condition, future in list(self._watchers):
                    if not future.done() and condition():
                        future.set_result(None)
                self._watchers = [w for w in self._watchers if not w[1].done()]
                if not self._watchers and not link.busy:
                    return
                link.check()
                await wait(link.dialer.sockets, link.wait(), self._wake)
        except errors.SvmstreamError as error:
            self._fail(error)

    def _start(self) -> None:
        assert self._wake is not None
        if self._pump_task is None or self._pump_task.done():
            self._pump_task = asyncio.get_running_loop().create_task(self._pump())
        else:
            self._wake.set()

    async def _ready(self) -> Link:
        await self.open()
        if self._link is None:
            self._link = self._open_link(self._settle)
        return self._link

    async def _until(self, condition: Callable[[], bool]) -> None:
        """Until the condition holds, which may change with each reply. It raises what it has to."""
        future: "asyncio.Future[None]" = asyncio.get_running_loop().create_future()
        error: List[BaseException] = []

        def guarded() -> bool:
            try:
                return condition()
            except errors.SvmstreamError as reason:
                error.append(reason)
                return True

        self._watchers.append((guarded, future))
        self._start()
        await future
        if error:
            raise error[0]

    # ---- rows

    async def _put(self, link: Link, row: bytes,
                   cursor: Union[None, bytes, str] = None) -> "asyncio.Future[Result]":
        future: "asyncio.Future[Result]" = asyncio.get_running_loop().create_future()

        def attempt() -> bool:
            if future.cancelled():
                return True
            self._raise_moved()
            number = link.box.put(row, cursor)
            if number is not None:
                self._results[number] = future
            return number is not None

        try:
            if not attempt():
                await self._until(attempt)
        except asyncio.CancelledError:
            future.cancel()
            raise
        return future

    async def send(self, x: Any, y: Any = None, *, id: Union[None, int, str] = None, ts: Any = None,
                   w: float = 1.0,
                   key: Union[None, int, str] = None,
                   cursor: Union[None, bytes, str] = None) -> wire.Score:
        """Sends a row and returns its score; see `Stream.send`. A cancelled call may have sent its
        row.
        """
        self._check()
        row = self._packer.row(x, y, id, ts, w, key)
        link = await self._ready()
        future = await self._put(link, row, cursor)
        self._start()
        result = await future
        if isinstance(result, errors.SvmstreamError):
            raise result
        return result

    def send_many(self, rows: Any, y: Any = None, *, id: Any = None, ts: Any = None,
                  w: Any = None, key: Any = None,
                  batch: int = 64, in_flight: int = 64
                  ) -> AsyncIterator[Union[wire.Score, errors.SvmstreamError]]:
        """Sends rows and yields their scores, in order; see `Stream.send_many`. rows may be an
        asynchronous iterable.
        """
        return AsyncLazy(self._many(rows, y, id, ts, w, key, batch, in_flight))

    async def _many(self, rows: Any, y: Any, id: Any, ts: Any, w: Any, key: Any, batch: int,
                    in_flight: int
                    ) -> AsyncIterator[Union[wire.Score, errors.SvmstreamError]]:
        if not 1 <= batch <= 4096 or not 1 <= in_flight <= 100_000 or batch * in_flight > 500_000:
            raise errors.SettingError("batch is 1 to 4096 rows, in_flight 1 to 100000 messages, "
                                      "500000 rows in all")
        link = await self._ready()
        packer = _packing.RowPacker(self._packer.missing)
        source: Optional[Iterator[Union[bytes, errors.SvmstreamError]]] = None
        if hasattr(rows, "__aiter__"):
            if any(c is not None for c in (y, id, ts, w, key)):
                raise errors.WrongTypeError("y, id, ts, w and key go into the rows of an "
                                            "asynchronous iterable: yield Sample")
            arriving = _packed(packer, rows)
        else:
            source = packer.rows(rows, y, id, ts, w, key)
        order: Deque[Union["asyncio.Future[Result]", errors.SvmstreamError]] = deque()
        more, limit = True, batch * in_flight
        try:
            while more or order:
                put = 0
                while more and len(order) < limit and put < batch:
                    try:
                        row = next(source) if source is not None else await arriving.__anext__()
                    except (StopIteration, StopAsyncIteration):
                        more = False
                        break
                    put += 1
                    try:
                        order.append(row if isinstance(row, errors.SvmstreamError)
                                     else await self._put(link, row))
                    except errors.InputError as error:
                        order.append(error)
                    if source is None:
                        self._start()
                self._start()
                if order and (not more or len(order) > limit - batch):
                    head = order[0]
                    if not isinstance(head, errors.SvmstreamError) and not head.done():
                        await asyncio.wait([head])  # which does not cancel it
                elif put:
                    await asyncio.sleep(0)
                while order:
                    head = order[0]
                    if isinstance(head, errors.SvmstreamError):
                        yield order.popleft()  # type: ignore[misc]
                    elif head.done():
                        order.popleft()
                        yield head.result()
                    else:
                        break
        finally:
            for left in order:
                if not isinstance(left, errors.SvmstreamError):
                    left.cancel()
                    if left.done() and not left.cancelled():
                        left.exception()  # seen

    async def flush(self) -> None:
        """Waits until every row is answered for, and on disk if the process keeps its state."""
        link = await self._ready()
        if link.box.status().put > 0:
            await self._until(lambda: link.box.delivered)

    async def wanted(self) -> int:
        """The number of the row to send next; see `Stream.wanted`."""
        link = await self._ready()
        await self._until(lambda: bool(link.box.status().greeted))
        link.box.moved = None
        return link.box.wanted

    async def place(self) -> Optional[bytes]:
        """The `cursor` of the last row that the process has of this source; None: it has none."""
        link = await self._ready()
        await self._until(lambda: bool(link.box.status().greeted))
        return link.box.place

    async def figures(self) -> Dict[str, int]:
        """What the outbox counts; see `Stream.figures`."""
        return (await self._ready()).box.figures()

    # ---- events

    def events(self, *names: str, timeout: Optional[float] = None,
               key: Union[None, int, str] = None) -> AsyncEvents[wire.Event]:
        """Events of these kinds, to iterate over by `async for`; see `Stream.events`."""
        return AsyncEvents(self, names, timeout, key)

    def scores(self, *, timeout: Optional[float] = None,
               key: Union[None, int, str] = None) -> AsyncEvents[wire.Score]:
        """The scores of all rows, of every producer."""
        return AsyncEvents(self, ("score",), timeout, key)

    def models(self, *, timeout: Optional[float] = None,
               key: Union[None, int, str] = None) -> AsyncEvents[wire.ModelEvent]:
        """The models that are published, beginning with the last one."""
        return AsyncEvents(self, ("model",), timeout, key)

    def alerts(self, *, timeout: Optional[float] = None,
               key: Union[None, int, str] = None) -> AsyncEvents[wire.Alert]:
        """The alerts that open, get worse and close."""
        return AsyncEvents(self, ("alert",), timeout, key)

    # ---- requests

    async def command(self, op: str, *, timeout: Optional[float] = None,
                      **keys: Any) -> Dict[str, Any]:
        """Sends any request and returns its reply; see `Stream.command`."""
        await self.open()
        assert self._requesting is not None
        async with self._requesting:
            self._check()
            return cast(Dict[str, Any], await drive(self._request(op, keys, timeout)))

    async def status(self, key: Union[None, int, str] = None) -> wire.Status:
        """Counters, quality and figures of the process, or of one key."""
        return wire.Status(await self.command("status", key=key))

    async def config(self, settings: Optional[Mapping[str, Any]] = None,
                     **more: Any) -> Dict[str, Any]:
        """All settings with their values; those given are changed first."""
        given = _packing.settings(settings, more)
        return cast(Dict[str, Any], (await self.command("config", set=given or None))["config"])

    async def label(self, id: Union[int, str], y: Any, key: Union[None, int, str] = None) -> None:
        """The label of a row that was sent without one, by its id."""
        await self.command("label", id=id, y=y, key=key)

    async def forget(self, id: Union[int, str], key: Union[None, int, str] = None) -> int:
        """Removes every row with this id from what was learned; returns their number."""
        return int((await self.command("forget", id=id, key=key))["count"])

    async def keys(self, **filters: Any) -> List[Dict[str, Any]]:
        """The keys of a stream that has some; see `Stream.keys`."""
        return cast(List[Dict[str, Any]], (await self.command("keys", **filters))["keys"])

    async def score(self, x: Any, key: Union[None, int, str] = None) -> wire.Score:
        """The score of a row that is neither learned nor counted."""
        sample = wire.unpack_plain(self._packer.row(x))
        return wire.Score(await self.command("score", sample=sample, key=key))

    async def model(self, key: Union[None, int, str] = None) -> Any:
        """The current model, as a Model."""
        from .model import Model  # pylint: disable=import-outside-toplevel
        return Model.from_event((await self.command("model", key=key))["model"])

    async def publish(self, key: Union[None, int, str] = None) -> None:
        """Model, bank, stats and, with publish.sums, sums are published now."""
        await self.command("publish", key=key)


async def _packed(packer: _packing.RowPacker,
                  rows: AsyncIterable[Any]) -> AsyncIterator[Union[bytes, errors.SvmstreamError]]:
    """The samples of an asynchronous iterable."""
    async for item in rows:
        for row in packer.rows([item]):
            yield row
