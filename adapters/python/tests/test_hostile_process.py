"""Whatever answers at an address, the client raises an exception of its own that says so."""
import asyncio
import threading

import msgpack
import numpy as np
import pytest
import zmq

from process import Process
from svmstream import AsyncStream, Stream, _outbox, errors
from svmstream._library import ffi, lib
from svmstream.wire import Event, Losses

NO_MAPS = [b"", b"\xc1", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\x91" * 5000, b"\x05",
           b"\xa1x", b"\x81\xa1x\xc7\x03\x02123", b"\x81\xa1x\xc7\x03\xff123",
           b"\x81\xa1x\xa2\xff\xfe", b"\x80\x80"]


class Hostile:
    """`ctl`, `in` and `out`: each request to `ctl` but the first, each message to `in`, and each
    subscription get `answer`. With first=True also the first request.
    """

    def __init__(self, answer, first=False):
        self._answer = answer if isinstance(answer, list) else [answer]
        self._context, self._first, self._over = zmq.Context(), first, False
        self._sockets = [self._context.socket(kind) for kind in (zmq.ROUTER, zmq.ROUTER, zmq.XPUB)]
        ports = [socket.bind_to_random_port("tcp://127.0.0.1") for socket in self._sockets]
        self.address = "tcp://127.0.0.1:%d" % ports[0]
        names = (("ctl", "router"), ("in", "router"), ("out", "pub"))
        self._hello = msgpack.packb({"stream": "default", "addresses": {
            name: {"address": "tcp://127.0.0.1:%d" % port, "mode": mode}
            for (name, mode), port in zip(names, ports)}})
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        ctl, _, out = self._sockets
        poller = zmq.Poller()
        for socket in self._sockets:
            poller.register(socket, zmq.POLLIN)
        greeted = self._first
        while not self._over:
            for socket, _ in poller.poll(20):
                frames = socket.recv_multipart()
                if socket is out:
                    for topic in (b"score.default", b"alert.default"):
                        out.send_multipart([topic, *self._answer])
                elif socket is ctl and not greeted:
                    greeted = True
                    ctl.send_multipart([frames[0], self._hello])
                elif socket is not ctl or msgpack.unpackb(frames[-1]) != {"op": "status"} \
                        or self._first:
                    socket.send_multipart([frames[0], *self._answer])
                else:
                    ctl.send_multipart([frames[0], self._hello])
        for socket in self._sockets:
            socket.close(0)
        self._context.term()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over = True
        self._thread.join()


@pytest.mark.parametrize("answer", NO_MAPS, ids=range(len(NO_MAPS)))
def test_replies_and_events_that_are_no_messages(answer):
    with Hostile(answer) as process, Stream(process.address, timeout=0.4) as stream:
        for call in (lambda: stream.command("config"), lambda: stream.forget(3), stream.model):
            with pytest.raises(errors.FileError, match="not svmstream"):
                call()
        with stream.events(timeout=5) as events, pytest.raises(errors.FileError):
            next(events)
        with pytest.raises(errors.SvmstreamError):
            stream.send([1.0, 2.0], 1)
        stream.close(wait=False)


@pytest.mark.parametrize("addresses", [5, [], {"in": 5}, {"ctl": {"address": 5}},
                                       {"out": {"address": ["tcp://127.0.0.1:1"]}}])
def test_addresses_that_are_none(addresses):
    with Hostile(msgpack.packb({"addresses": addresses}), first=True) as process:
        with pytest.raises(errors.FileError, match="not svmstream"):
            Stream(process.address, timeout=2)


@pytest.mark.parametrize("reply", [{"error": 5}, {"error": {}, "code": []}, {"error": None,
                                                                             "code": 7}])
def test_errors_without_a_code_are_errors(reply):
    with Hostile(msgpack.packb(reply)) as process, Stream(process.address, timeout=2) as stream:
        with pytest.raises(errors.SvmstreamError) as info:
            stream.command("config")
        assert isinstance(info.value.code, str)


def test_events_of_other_shapes():
    for answer in ([], [msgpack.packb({"seq": 1}), b""], [msgpack.packb({"seq": "1"})],
                   [msgpack.packb({"epoch": [], "seq": 1})]):
        with Hostile(answer) as process, Stream(process.address, timeout=2) as stream:
            with stream.events(timeout=5) as events, pytest.raises(errors.FileError):
                next(events)


def test_later_keys_and_unknown_topics_are_passed_on():
    answer = msgpack.packb({"seq": 0, "epoch": 1, "later": {"a": [1]}})
    with Hostile(answer) as process, Stream(process.address, timeout=2) as stream:
        with stream.events(timeout=5) as events:
            assert [next(events)["later"] for _ in range(2)] == [{"a": [1]}] * 2
            assert events.lost == 0


def test_jumps_and_new_epochs_are_counted():
    losses = Losses()
    seen = [losses.newer(Event({"epoch": e, "seq": s}, "score.x"))
            for e, s in ((1, 0), (1, 1), (1, 1), (1, 5), (2, 3), (2, 2))]
    assert seen == [True, True, False, True, True, False] and losses.lost == 3 + 3


def test_an_interrupt_during_a_report_waits_for_the_end_of_the_call():
    box = _outbox.Outbox("a", False, 0, None, lambda number, result: None)
    try:
        noted = []

        def note(who):
            noted.append(who)
            if len(noted) == 1:
                raise KeyboardInterrupt

        _outbox._whole(box, note)
        assert noted == [box, box]
        with pytest.raises(KeyboardInterrupt):
            box.frame(0.0)
        box.frame(0.0)
    finally:
        box.free()


def test_an_interrupt_at_the_first_step_of_a_report_loses_nothing():
    box = _outbox.Outbox("a", False, 0, None, lambda number, result: None)
    try:
        code, reason = ffi.new("char[]", b"later"), ffi.new("char[]", b"full")
        event = ffi.new("svs_outbox_event *")
        event.kind, event.code, event.reason = lib.SVS_OUTBOX_LATER, code, reason

        def interrupted(user, event):
            raise KeyboardInterrupt

        try:
            interrupted(box._user, event)
        except KeyboardInterrupt as error:
            _outbox._event_again(type(error), error, error.__traceback__.tb_next)
        assert box.later == ("later", "full")
        with pytest.raises(KeyboardInterrupt):
            box.frame(0.0)
    finally:
        box.free()


@pytest.mark.parametrize("replay", [False, True])
def test_an_interrupt_right_after_a_row_was_put_leaves_its_number(monkeypatch, process, replay):
    put = _outbox._put

    def interrupted(*args):
        put(*args)
        monkeypatch.undo()
        raise KeyboardInterrupt

    with Stream(process.ctl, src="interrupted-%s" % replay, replay=replay, timeout=5) as stream:
        assert stream.wanted == 0
        for number in (0, 2):
            monkeypatch.setattr(_outbox, "_put", interrupted)
            with pytest.raises(KeyboardInterrupt):
                stream.send([1.0, 2.0], 1)
            assert stream.send([2.0, 3.0], 1).number == number + 1
        assert stream.wanted == 4 and stream.figures()["put"] == 4


def test_names_do_not_end_at_a_nul():
    for options in ({"src": "a\0b"}, {"src": "\ud800"}, {"columns": ["a", "b\0"]}):
        with Hostile(b"\x80") as process:
            with Stream(process.address, timeout=0.4, **options) as stream:
                with pytest.raises(errors.InputError, match="NUL|Unicode"):
                    stream.send([1.0, 2.0])


@pytest.fixture(scope="module")
def process(program):
    with Process(program, method="alsvm", novelty="none") as found:
        yield found


def test_arguments_that_are_none(process):
    nan = float("nan")
    masked = np.ma.masked_array([[1.0, 2.0]], mask=[[False, True]])
    with Stream(process.ctl, timeout=5) as stream:
        for call, error, match in (
            (lambda: stream.command("status", timeout=nan), errors.SettingError, "timeout"),
            (lambda: stream.events(timeout=nan), errors.SettingError, "timeout"),
            (lambda: stream.events("\ud800"), errors.WrongTypeError, "Unicode"),
            (lambda: stream.events("score", key="\ud800"), errors.WrongTypeError, "Unicode"),
            (lambda: stream.send([1.0], cursor=5), errors.WrongTypeError, "cursor"),
            (lambda: stream.send([1.0], cursor=2**40), errors.WrongTypeError, "cursor"),
            (lambda: stream.send(masked[0]), errors.MissingValueError, "masked"),
            (lambda: list(stream.send_many(masked)), errors.MissingValueError, "masked"),
        ):
            with pytest.raises(error, match=match):
                call()
        assert stream.send([1.0, 2.0], 1).number == 0


def test_a_generator_that_fails_or_sends_itself(process):
    with Stream(process.ctl, timeout=20) as stream:
        def failing():
            yield [1.0, 2.0]
            raise RuntimeError("the source")

        def sending():
            for _ in range(5):
                stream.send([1.0, 2.0])
                yield [3.0, 4.0]

        def endless():
            while True:
                yield [1.0, 2.0]

        with pytest.raises(RuntimeError, match="the source"):
            list(stream.send_many(failing()))
        assert len(list(stream.send_many(sending()))) == 5
        for i, score in enumerate(stream.send_many(endless(), batch=4, in_flight=4)):
            assert isinstance(score.number, int)
            if i == 50:
                break
        stream.flush()
        assert stream.figures()["kept"] == 0 and not stream._results


def test_an_async_stream_belongs_to_its_loop(process):
    stream = AsyncStream(process.ctl, timeout=20)
    assert asyncio.run(stream.send([1.0, 2.0])).number == 0
    with pytest.raises(errors.UnavailableError, match="event loop"):
        asyncio.run(stream.send([1.0, 2.0]))
    with pytest.raises(errors.UnavailableError, match="event loop"):
        asyncio.run(stream.close())
    asyncio.run(stream.close())  # it is closed already
