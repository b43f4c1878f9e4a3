"""Kills: a producer and its process are killed at any time and started again; each row is taken
once, in order.

The state after all of it has exactly the rows, and the model is that of a stream that nothing
happened to.
"""
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from process import PATIENCE, Process, rows

from svmstream import Stream

ROWS = 3000

PRODUCER = """
import sys
sys.path.insert(0, %r)
from process import rows
from svmstream import Stream
from svmstream.client import MovedError
sent = list(rows(%d))
form, ctl = sys.argv[1], sys.argv[2]
stream = Stream(ctl, src="plant", timeout=30)
while True:
    wanted = stream.wanted if form != "cursor" else int(stream.place or b"0")
    if wanted >= len(sent):
        break
    print(wanted, flush=True)
    try:
        if form == "many":
            for _ in stream.send_many(sent[wanted:], batch=8, in_flight=16):
                pass
        else:
            for i in range(wanted, len(sent)):
                stream.send(*sent[i], cursor=b"%%d" %% (i + 1))
    except MovedError as moved:
        print("moved to", moved.wanted, flush=True)
stream.close()
"""


def settings(folder):
    return {"method": "alsvm", "novelty": "none", "refit": "none",
            "state.dir": os.path.join(folder, "state"),
            "delivery": "durable"}


def weights(stream):
    model = stream.model()
    return model.coef_.tolist(), model.intercept_.tolist()


@pytest.mark.parametrize("form", ["many", "cursor"])
def test_kills(program, tmp_path, form):
    count = ROWS if form == "many" else 600
    code = PRODUCER % (os.path.dirname(os.path.abspath(__file__)), count)
    r = random.Random(form)
    process = Process(program, **settings(str(tmp_path)))
    producer = subprocess.Popen([sys.executable, "-c", code, form, process.ctl],
                                stdout=subprocess.PIPE)
    begins, kills = [], 0
    try:
        while kills < (3 if form == "many" else 2):
            begins.append(producer.stdout.readline())
            time.sleep(r.uniform(0.0, 0.04))  # anywhere in the middle
            if producer.poll() is not None:
                break
            if kills % 2:
                process.kill()
                process = Process(program, **{**settings(str(tmp_path)), **process.addresses})
            producer.send_signal(signal.SIGKILL)
            producer.wait()
            kills += 1
            producer = subprocess.Popen([sys.executable, "-c", code, form, process.ctl],
                                        stdout=subprocess.PIPE)
        assert producer.wait(PATIENCE * 3) == 0
        with Stream(process.ctl) as s:
            assert s.status().seen == count, begins
            found = weights(s)
    finally:
        if producer.poll() is None:
            producer.kill()
        producer.wait()
        producer.stdout.close()
        process.kill()
    assert kills >= 1
    with Process(program, method="alsvm", novelty="none",
                 refit="none") as fresh, Stream(fresh.ctl) as s:
        for _ in s.send_many(rows(count)):
            pass
        assert weights(s) == found


def test_process_is_killed_beneath(program, tmp_path):
    """The producer lives on: what the process had not taken is sent again by the outbox, without a
    word.
    """
    process = Process(program, **settings(str(tmp_path)))
    addresses = process.addresses
    with Stream(process.ctl, timeout=30) as s:  # without a name: nothing can be read again
        many, taken = s.send_many(rows(2000), batch=4, in_flight=8), 0
        try:
            for _ in many:
                taken += 1
                if taken in (300, 1100):
                    process.kill()
                    process = Process(program, **{**settings(str(tmp_path)), **addresses})
            assert taken == 2000 and s.status().seen == 2000
            assert s.figures()["lost"] == 0
        finally:
            s.close(wait=False)
            process.kill()


def test_moved(program):
    """A process that kept nothing wants everything again from a producer that can read it again."""
    from svmstream.client import MovedError
    process = Process(program, method="alsvm")
    with Stream(process.ctl, src="log", timeout=30) as s:
        for x, y in rows(10):
            s.send(x, y)
        assert s.wanted == 10 and s.place is None
        process.kill()
        with Process(program, method="alsvm", **process.addresses):
            with pytest.raises(MovedError, match="log") as caught:
                s.send([1.0] * 4, 0)
            assert caught.value.wanted == 0 == s.wanted
            for x, y in rows(10):
                s.send(x, y, cursor="at %d")
            assert s.wanted == 10 and s.place == b"at %d" and s.status().seen == 10
