"""AsyncStream: the same as Stream, for tasks that share it, with cancellation at any time."""
import asyncio
import gc
import os
import threading
import warnings

import numpy as np
import pytest
import zmq.asyncio

from process import Process, rows

from svmstream import AsyncStream, Stream, errors


@pytest.fixture(scope="module")
def run(program):
    with Process(program, method="alsvm", novelty="none", refit="none") as process:
        yield process


def go(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 60))


def seen(run):
    with Stream(run.ctl) as s:
        return s.status().seen


def reset(run):
    with Stream(run.ctl) as s:
        s.command("reset")
        return s.status().seen


def test_send_many_that_is_not_iterated_is_a_warning(run):
    async def main():
        async with AsyncStream(run.ctl) as s:
            with pytest.warns(RuntimeWarning, match="nothing was sent"):
                s.send_many([{"a": 1.0}])
                gc.collect()
            with pytest.raises(TypeError, match="async for"):
                list(s.send_many([{"a": 1.0}]))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert len([r async for r in s.send_many([{"a": 1.0}] * 3)]) == 3
                gc.collect()

    go(main())


def test_the_same_as_stream(run):
    sent = list(rows(200))
    reset(run)
    with Stream(run.ctl) as s:
        expected = [r.scores for r in s.send_many(sent)]

    async def one_by_one():
        async with AsyncStream(run.ctl) as s:
            return [(await s.send(x, y)).scores for x, y in sent]

    async def many(form, **options):
        async with AsyncStream(run.ctl) as s:
            return [r.scores async for r in s.send_many(form(), **options)]

    async def arriving():
        for row in sent:
            await asyncio.sleep(0)
            yield row

    reset(run)
    assert go(one_by_one()) == expected
    for form, options in ((lambda: sent, {}), (lambda: sent, {"batch": 1, "in_flight": 3}),
                          (arriving, {"batch": 5})):
        reset(run)
        assert go(many(form, **options)) == expected


def test_tasks_share_it(run):
    before = reset(run)

    async def main():
        async with AsyncStream(run.ctl) as s:
            found = await asyncio.gather(*(s.send(x, y, id=i) for i,
                                           (x, y) in enumerate(rows(300))), s.status())
            assert [r.id for r in found[:-1]] == list(range(300))
            bad = await asyncio.gather(s.send([1.0]), s.send([1.0, 2, 3, 4]),
                                       return_exceptions=True)
            assert isinstance(bad[0], errors.WrongDimensionError) and bad[1].scored

    go(main())
    assert seen(run) - before == 301


def test_cancelled(run):
    """A task that is cancelled while it waits: the next send works, and each row is taken at most
    once.
    """
    before = reset(run)

    async def main():
        async with AsyncStream(run.ctl) as s:
            await s.send([0.0] * 4, 0)
            for i in range(200):
                task = asyncio.ensure_future(s.send([float(i)] * 4, i % 2, id=i))
                for _ in range(i % 7):
                    await asyncio.sleep(0)
                task.cancel()
                try:
                    await task
                except asyncio.CancelledError:
                    pass
                if i % 20 == 0:
                    assert (await s.send([1.0] * 4, 1)).scored
            many = s.send_many(rows(2000))
            assert (await many.__anext__()).scored
            await many.aclose()
            assert (await s.send([1.0] * 4, 1)).scored
            await s.flush()
            figures = await s.figures()
            assert figures["kept"] == 0 and figures["put"] == figures["acked"]
            assert not s._results and not s._watchers
            return figures["put"]

    assert go(main()) == seen(run) - before


def test_requests_and_events(run):
    reset(run)

    async def main():
        context = zmq.asyncio.Context()
        async with AsyncStream(run.ctl, context=context) as s:
            async with s.scores(timeout=20) as scores:
                sent = [await s.send(x, y, id=i) for i, (x, y) in enumerate(rows(50))]
                found = []
                async for event in scores:
                    found.append(event)
                    if len(found) == 50:
                        break
                assert [e.scores for e in found] == [r.scores for r in sent] and scores.lost == 0
            await s.send([1.0, 2, 3, 4], id="late")
            await s.label("late", 1)
            assert await s.forget("late") == 1
            with pytest.raises(KeyError):
                await s.forget("late")
            assert (await s.config(C=2))["C"] == 2 and (await s.config({"C": 1}))["C"] == 1
            model, x = await s.model(), np.array([1.0, 2, 3, 4])
            assert model.predict_one(x) == (await s.score(x)).yhat
            waiting = asyncio.ensure_future(s.alerts().__anext__())
            await asyncio.sleep(0)
            waiting.cancel()
            assert [a async for a in s.alerts(timeout=0.05)] == []
            assert len(await asyncio.gather(*(s.status() for _ in range(20)))) == 20
        assert not context.closed
        context.term()

    go(main())


def test_failures(program):
    async def nobody():
        with pytest.raises(TimeoutError, match="127.0.0.1:9"):
            async with AsyncStream("tcp://127.0.0.1:9", timeout=0.3):
                pass
        s = AsyncStream("tcp://127.0.0.1:9", timeout=0.3)
        with pytest.raises(TimeoutError):
            await s.send([1.0])
        await s.close()
        with pytest.raises(errors.UnavailableError, match="closed"):
            await s.send([1.0])

    go(nobody())

    async def ended():
        process = Process(program, method="alsvm")
        s = await AsyncStream(process.ctl, timeout=0.5).open()
        with process:
            await s.send([1.0], 0)
        found = await asyncio.gather(*(s.send([1.0], 0) for _ in range(3)), return_exceptions=True)
        assert all(isinstance(e, TimeoutError) for e in found), found
        await s.close(wait=False)

    go(ended())


def test_nothing_is_left(run):
    threads, tasks = threading.active_count(), len(os.listdir("/proc/self/task"))

    async def main():
        s = await AsyncStream(run.ctl).open()
        waiting = asyncio.ensure_future(s.send([1.0, 2, 3, 4]))
        await s.close()
        assert (await asyncio.gather(waiting, return_exceptions=True))[0] is not None
        assert len(asyncio.all_tasks()) <= 2  # this one, and that of wait_for

    go(main())
    assert threading.active_count() == threads and len(os.listdir("/proc/self/task")) <= tasks
