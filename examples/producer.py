#!/usr/bin/python3
"""A producer that loses nothing, in Python: what `svmstream run --in.mode router` has not acknowledged is sent again.

    svmstream run --in.mode router &
    examples/producer.py tcp://127.0.0.1:5555 10000

With CURVE, from `svmstream curve new mine.key` and the server's public key (or the .pub file of it):

    examples/producer.py tcp://server:5555 10000 spiral mine.key server.key.pub

The process answers {op: hello, src} with the number that it wants next, and each message with the last number that it has taken.
Samples stay in a list until they are acknowledged, and when the process keeps its state (hello has its `delivery`) until they are
on its disk (`durable`). When no answer comes for a second, or a gap is reported, hello finds out where to go on; a process that was
started again begins to count at 0, and gets all that is still in the list. Each message asks for its score, so that the prediction for
a sample comes with its acknowledgement: no second socket is needed to learn and to predict. Each run has a name of its own: messages that an earlier
run left on their way cannot be mistaken for its.
"""
import collections
import math
import os
import sys
import time

import msgpack
import zmq
import zmq.auth

WINDOW, ROOM, SECOND, PATIENCE = 256, 100000, 1000, 30
KEEPS = ("at-least-once", "durable", "exactly-once")


class Producer:
    def __init__(self, dealer, src):
        self.dealer, self.src = dealer, src
        self.waiting = collections.deque()  # samples that are not released
        self.number = None                  # of the first of them
        self.taken, self.sent = 0, 0        # how many of them are answered for; how many are that or under way
        self.keeps = False                  # the process does, on disk
        self.acked, self.resent = 0, 0
        self.right = 0                      # labels that were predicted before they were learned
        self.refused = {}                   # number: (sample, reason)

    def ask(self, message):
        self.dealer.send(msgpack.packb(message))

    def answer(self):
        """The next reply; {} when none comes for a second."""
        return msgpack.unpackb(self.dealer.recv()) if self.dealer.poll(SECOND) else {}

    def hello(self):
        """Finds out which number is wanted. Answers to samples that come before it are of no use any more."""
        self.ask({"op": "hello", "src": self.src})
        while reply := self.answer():
            if "next" in reply and "n" not in reply and "ok" in reply:
                break
        else:
            return False
        number, self.keeps = reply["next"], reply.get("delivery") in KEEPS
        if self.number is None or not self.number <= number <= self.number + self.sent:
            if self.number is not None:
                print(f"another process: {max(0, self.number - number)} acknowledged samples are lost with the one before", flush=True)
            self.resent += self.sent
            self.number, self.sent = number, 0  # it counts from there again
        self.resent += self.number + self.sent - number
        self.taken = self.sent = number - self.number
        self.release(reply)
        return True

    def release(self, reply):
        count = self.taken
        if self.keeps:
            count = min(count, reply.get("durable", -1) + 1 - self.number)
        for _ in range(count):
            self.waiting.popleft()
            self.acked += self.number not in self.refused
            self.number, self.taken, self.sent = self.number + 1, self.taken - 1, self.sent - 1

    def take(self, reply):
        """False: hello is needed."""
        n = reply.get("n", -1)
        if (reply.get("ok") or reply.get("final")) and self.taken <= n - self.number < self.sent:
            self.taken = n - self.number + 1
            for score in reply.get("scores", ()):  # of the one sample of this message; what was taken before has none
                self.right += score.get("yhat") == self.waiting[self.taken - 1]["y"]
            if reply.get("final"):
                self.refused[n] = (self.waiting[self.taken - 1], reply["error"])
            self.release(reply)
        return bool(reply.get("ok") or reply.get("final"))

    def deliver(self, samples):
        """Sends samples from an iterable until each is acknowledged or refused. False: nobody answers."""
        samples, greeted, moved, before = iter(samples), False, time.monotonic(), 0
        while time.monotonic() - moved < PATIENCE:
            while len(self.waiting) < min(self.taken + WINDOW, ROOM) and (sample := next(samples, None)) is not None:
                self.waiting.append(sample)
            if not self.waiting:
                return True
            greeted = greeted or self.hello()
            while greeted and self.sent < len(self.waiting):
                self.ask(dict(self.waiting[self.sent], src=self.src, n=self.number + self.sent, reply="score"))
                self.sent += 1
            if greeted and self.taken < self.sent:
                greeted = self.take(self.answer())
            elif greeted:
                greeted = not self.waiting  # all is taken, not all is on disk: hello shows how far that is
            if self.number is not None and self.number + self.taken + self.acked != before:
                moved, before = time.monotonic(), self.number + self.taken + self.acked
            if not greeted:
                time.sleep(0.05)  # also after a gap, a process that takes nothing for now (a full disk), or silence
        return False


def spiral(count):
    for i in range(count):
        x = [math.cos(0.7 * i), math.sin(1.3 * i), 0.5 * math.cos(0.11 * i)]
        yield {"id": i, "x": x, "y": int(x[0] + 2 * x[1] > x[2])}


def public_key(text):
    """As it is, or from a file."""
    return zmq.auth.load_certificate(text)[0] if os.path.exists(text) else text.encode()


def main():
    if not 2 <= len(sys.argv) <= 6 or len(sys.argv) == 5 or not all(n.isdecimal() for n in sys.argv[2:3]):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    context = zmq.Context()
    dealer = context.socket(zmq.DEALER)
    dealer.linger = 0
    if len(sys.argv) == 6:
        dealer.curve_publickey, dealer.curve_secretkey = zmq.auth.load_certificate(sys.argv[4])
        dealer.curve_serverkey = public_key(sys.argv[5])
    dealer.connect(sys.argv[1])
    producer = Producer(dealer, sys.argv[3] if len(sys.argv) > 3 else f"spiral-{time.time_ns()}")
    all_told = producer.deliver(spiral(int(sys.argv[2]) if len(sys.argv) > 2 else 10000))
    for sample, reason in list(producer.refused.values())[:5]:
        print(f"refused: {sample['id']}: {reason}", file=sys.stderr)
    print(f"{producer.acked} acknowledged, {len(producer.refused)} refused, {producer.resent} sent again, {len(producer.waiting)} left, "
          f"{producer.right} predicted")
    if not all_told:
        print(f"nothing was acknowledged for {PATIENCE} s: is `svmstream run --in.mode router` there?", file=sys.stderr)
    sys.exit(0 if all_told and not producer.refused else 1)


if __name__ == "__main__":
    main()
