#!/usr/bin/python3
"""A producer that loses nothing, in Python: what `svmstream run --in.mode router` has not acknowledged is sent again.

    svmstream run --in.mode router &
    examples/producer.py tcp://127.0.0.1:5555 10000

The process answers {op: hello, src} with the number that it wants next, and each message with the last number that it has taken.
Samples stay in a list until they are acknowledged. When no answer comes for a second, or a gap is told, hello finds out where to go
on; a process that was started anew begins to count at 0, and gets all that was not acknowledged. Each run has a name of its own:
messages that an earlier run left on their way cannot be mistaken for its.
"""
import collections
import math
import sys
import time

import msgpack
import zmq

WINDOW, SECOND, PATIENCE = 256, 1000, 30


class Producer:
    def __init__(self, dealer, src):
        self.dealer, self.src = dealer, src
        self.waiting = collections.deque()  # samples that are not acknowledged
        self.number, self.sent = None, 0    # number of the first of them; how many are under way
        self.acked, self.resent = 0, 0
        self.refused = []                   # (sample, reason)

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
        number = reply["next"]
        if self.number is None or not self.number <= number <= self.number + self.sent:
            if self.number is not None:
                print(f"another process: {self.acked} samples were acknowledged before", flush=True)
            self.number = number  # it counts anew
        self.resent += self.sent - self.taken_below(number)
        self.sent = 0
        return True

    def taken_below(self, number):
        count = number - self.number
        for _ in range(count):
            self.waiting.popleft()
        self.number, self.acked, self.sent = number, self.acked + count, self.sent - count
        return count

    def take(self, reply):
        """False: hello is needed."""
        n = reply.get("n", -1)
        if reply.get("ok") and self.number <= n < self.number + self.sent:
            self.taken_below(n + 1)
        elif reply.get("final") and self.number <= n < self.number + self.sent:
            self.taken_below(n)
            self.refused.append((self.waiting.popleft(), reply["error"]))
            self.number, self.sent = n + 1, self.sent - 1
        return bool(reply.get("ok") or reply.get("final"))

    def deliver(self, samples):
        """Sends samples from an iterable until each is acknowledged or refused. False: nobody answers."""
        samples, greeted, moved = iter(samples), False, time.monotonic()
        while time.monotonic() - moved < PATIENCE:
            while len(self.waiting) < WINDOW and (sample := next(samples, None)) is not None:
                self.waiting.append(sample)
            if not self.waiting:
                return True
            greeted = greeted or self.hello()
            while greeted and self.sent < len(self.waiting):
                self.ask(dict(self.waiting[self.sent], src=self.src, n=self.number + self.sent))
                self.sent += 1
            if greeted and not (greeted := self.take(self.answer())):
                time.sleep(0.05)  # a gap, a process that takes nothing for now, or silence
            moved = time.monotonic() if greeted else moved
        return False


def spiral(count):
    for i in range(count):
        x = [math.cos(0.7 * i), math.sin(1.3 * i), 0.5 * math.cos(0.11 * i)]
        yield {"id": i, "x": x, "y": int(x[0] + 2 * x[1] > x[2])}


def main():
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    context = zmq.Context()
    dealer = context.socket(zmq.DEALER)
    dealer.linger = 0
    dealer.connect(sys.argv[1])
    producer = Producer(dealer, sys.argv[3] if len(sys.argv) > 3 else f"spiral-{time.time_ns()}")
    all_told = producer.deliver(spiral(int(sys.argv[2]) if len(sys.argv) > 2 else 10000))
    for sample, reason in producer.refused[:5]:
        print(f"refused: {sample['id']}: {reason}", file=sys.stderr)
    print(f"{producer.acked} acknowledged, {len(producer.refused)} refused, {producer.resent} sent again, {len(producer.waiting)} left")
    sys.exit(0 if all_told and not producer.refused else 1)


if __name__ == "__main__":
    main()
