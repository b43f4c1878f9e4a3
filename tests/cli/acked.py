"""Numbered samples over real sockets: a tape of messages in a fixed order, and producers that send it, again and again until it is taken."""
import collections
import random
import time

import msgpack
import zmq

from live import Timeout, check, context, deadline  # noqa: F401: check for those who import all

BEGIN = 1.6e9  # ts of the first sample: engine time comes from the samples alone
Message = collections.namedtuple("Message", "src first count good bytes")


class Tape:
    """Messages in the one order in which they may be taken: several sources in turn, one sample or a batch each, one in a hundred wrong.
    The same seed gives the same bytes. Made as far as it is asked for."""

    def __init__(self, seed=1, d=5, sources=3, batch=4, wrong=0.01):
        self.random, self.d, self.batch, self.wrong = random.Random(seed), d, batch, wrong
        self.sources = ["s%d" % i for i in range(sources)]
        self.next = dict.fromkeys(self.sources, 0)
        self.messages, self.places = [], {s: [] for s in self.sources}
        self.cursors = {s: {0: None} for s in self.sources}  # that belongs to each number; messages of two samples state none
        self.samples = 0  # made so far
        self.counts, self.goods = [0], [0]  # samples, good samples before each message
        self.drift = [0.0] * d

    def sample(self):
        r, i = self.random, self.samples
        self.samples += 1
        y = r.randrange(2)
        j = r.randrange(self.d)
        self.drift[j] += r.gauss(0, 0.02)
        far = 8 if r.random() < 0.004 else 1  # alerts
        x = [far * (m + r.gauss(0, 1) + (0.8 * y if k < 2 else 0)) for k, m in enumerate(self.drift)]
        good = i == 0 or r.random() >= self.wrong
        s = {"x": x if good else x[:-1] + [float("nan")], "id": i, "ts": BEGIN + 0.01 * i}
        if r.random() < 0.9:
            s["y"] = y
        return s, good

    def make(self):
        src = self.sources[self.random.randrange(len(self.sources))]
        count = 1 if self.random.random() < 0.5 else self.random.randint(1, self.batch)
        made = [self.sample() for _ in range(count)]
        batch, first = [s for s, _ in made], self.next[src]
        batch[0].update(src=src, n=first)
        self.cursors[src][first + count] = b"%s after %d" % (src.encode(), first + count - 1) if count != 2 else None
        if count != 2:
            batch[0]["at"] = self.cursors[src][first + count]
        good = sum(g for _, g in made)
        self.places[src].append(len(self.messages))
        self.messages.append(Message(src, first, count, good, msgpack.packb(batch[0] if count == 1 else batch)))
        self.next[src] += count
        self.counts.append(self.counts[-1] + count)
        self.goods.append(self.goods[-1] + good)

    def __getitem__(self, i):
        while len(self.messages) <= i:
            self.make()
        return self.messages[i]

    def place(self, wanted):
        """The message to go on with when the sources' next numbers are `wanted`; None: what is taken is not a beginning of the tape."""
        at = 0
        while at < len(self.messages) and self.messages[at].first < wanted[self.messages[at].src]:
            at += 1
        return at if self.counts[at] == sum(wanted.values()) else None


class Link:
    """One connection of a producer; replies come in the order of the messages."""

    def __init__(self, address):
        self.socket = context.socket(zmq.DEALER)
        for option, value in ((zmq.LINGER, 0), (zmq.SNDHWM, 0), (zmq.RCVHWM, 0), (zmq.RECONNECT_IVL, 1)):
            self.socket.setsockopt(option, value)
        self.socket.connect(address)
        self.waiting = collections.deque()

    def ask(self, message, end=None):
        self.socket.send(message if isinstance(message, bytes) else msgpack.packb(message))
        return self.reply(end)

    def reply(self, end=None):
        left = (end or deadline()) - time.monotonic()
        if not self.socket.poll(max(0, int(1000 * left))):
            raise Timeout("no reply")
        return msgpack.unpackb(self.socket.recv())

    def hello(self, src):
        return self.ask({"op": "hello", "src": src})

    def close(self):
        self.socket.close(0)


class Producer:
    """Sends the tape through one connection or more, each in the tape's order, and notes what was acknowledged."""

    def __init__(self, tape, durable=False, seed=1):
        self.tape, self.durable = tape, durable
        self.random = random.Random(seed)
        self.acked = dict.fromkeys(tape.sources, -1)  # last number
        self.furthest = 0  # messages that were ever sent
        self.replies = self.twice = 0
        self.remarks = []  # what went against the protocol
        self.old = 0.02  # share of messages that are old ones again

    def blame(self, text, *details):
        if len(self.remarks) < 20:
            self.remarks.append((text,) + details)

    def connect(self, address, links=1):
        """Connections, and where to go on: every number that was acknowledged is there, and what is there is a beginning of the tape."""
        self.links = [Link(address) for _ in range(links)]
        try:
            return self.greet()
        except Exception:
            self.close()
            raise

    def greet(self):
        wanted = {}
        for src in self.tape.sources:
            answer = self.links[0].hello(src)
            wanted[src] = answer["next"]
            if wanted[src] < self.acked[src] + 1:
                self.blame("acknowledged samples are gone", src, self.acked[src], answer)
            if answer.get("at") != self.tape.cursors[src].get(wanted[src]):
                self.blame("the cursor is not that of the next number", src, answer)
        at = self.tape.place(wanted)
        if at is None:
            self.blame("what was taken is not a beginning of what was sent", wanted)
            at = 0
        for link in self.links:
            link.at = at
        return at

    def close(self):
        for link in self.links:
            link.close()

    def send(self, link, until):
        """The next message, or now and then an old one again."""
        i = link.at
        if i > 0 and self.random.random() < self.old:
            i = self.random.randrange(max(0, i - 300), i)
        elif i >= until:
            return False
        else:
            link.at += 1
        self.twice += i < self.furthest
        self.furthest = max(self.furthest, i + 1)
        link.socket.send(self.tape[i].bytes)
        link.waiting.append(i)
        return True

    def take(self, link):
        """One reply, checked."""
        self.judge(self.tape[link.waiting.popleft()], msgpack.unpackb(link.socket.recv()))
        self.replies += 1

    def judge(self, m, reply):
        last = m.first + m.count - 1
        if "ok" in reply:
            n = reply["n"]
            if n < last or reply["applied"] != n or reply["durable"] > n or (self.durable and reply["durable"] < n):
                self.blame("a wrong acknowledgement", m[:4], reply)
            self.acked[m.src] = max(self.acked[m.src], n)
        elif reply.get("final") and m.good == 0 and reply["next"] > last:
            self.acked[m.src] = max(self.acked[m.src], reply["next"] - 1)
        else:
            self.blame("a refusal", m[:4], reply)

    def fill(self, link, window, until):
        while len(link.waiting) < window and self.send(link, until):
            pass

    def turn(self, window, until, patience=None):
        """Keeps `window` messages on their way, takes the replies that are there. False: all up to `until` are answered, or nothing came."""
        for link in self.links:
            self.fill(link, window, until)
        busy = [link for link in self.links if link.waiting]
        if not busy:
            return False
        poller = zmq.Poller()
        for link in busy:
            poller.register(link.socket, zmq.POLLIN)
        ready = dict(poller.poll(1000 * (patience if patience is not None else deadline() - time.monotonic())))
        for link in busy:
            while ready and link.waiting and link.socket.poll(0):
                self.take(link)
        if not ready and patience is None:
            raise Timeout("no reply to %d messages" % sum(len(link.waiting) for link in busy))
        return bool(ready)

    def all(self, until, window=200):
        """Everything up to message `until`, each acknowledged."""
        while self.turn(window, until):
            pass

    def rest(self):
        """Replies of a process that has ended."""
        for link in self.links:
            while link.waiting and link.socket.poll(2):
                self.take(link)
