"""Plays moves to the program in $SVMSTREAM and writes down what comes back, move by move.

A transcript is a list of [number of the move, what it is, value]. Sample times and the clock of arrival come from the moves (given_clock.c),
every message is answered before the next one goes out, and its events are in before that: two runs of one program give the same bytes.
"""
import ctypes
import math
import mmap
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "recorded"))
import recorded  # noqa: E402
from live import PATIENCE, Run, Timeout, command  # noqa: E402
from samples import BEGIN  # noqa: E402

import msgpack  # noqa: E402
import zmq  # noqa: E402

# Of what is exempt elsewhere these do not differ here: the clock is given, and no text changes.
GIVEN = {"epoch", "run", "uptime", "error", "reason", "refit_error", "novelty_error"}
EXEMPT = frozenset(recorded.EXEMPT) - GIVEN
STATE = {"hash"}  # fingerprints of states, which change with their format
SYNCS = {"durable", "exactly-once"}  # with others `durable` of an acknowledgement goes by the clock of the disk
OF_CHECKPOINTS = {"keys_in_memory"}  # after a start it goes by the checkpoint that was taken up, which comes by processor time
# A state has none of these, so that after a kill it goes by the clock which of them a start repeats.
REMARKS = {"refused.unknown_column", "refused.ambiguous_class", "refused.new_class", "refused.twin_classes"}
# What a start says of the checkpoint that it took up.
OF_STARTS = re.compile(r"state: ")
REFIT = [msgpack.packb({"op": "refit"})]
STATUS = [msgpack.packb({"op": "status"})]
TOPICS = ("model.", "bank.", "score.", "alert.", "error.")
WHOLE = (b"score.", b"alert.")  # nothing in them is exempt
# In texts: speed, memory, fingerprints of states, which checkpoints there are, and figures of a model that is made again from one.
RATES = re.compile(r"(?m)^(?:(?:seconds|rows/s|memory|checkpoint-\w+|repeated|segments|from record|state) +.*|.* rows/s.*)\n|(?<=, )(?:checkpoint after record \d+, )?\d+ records applied in .*|"
                   r"(?<=leads to state )[0-9a-f]{32}|(?<=the checkpoint has )[0-9a-f]{32}|(?<=engine )[^|]*? MiB, process +[\d.]+ MiB|weights +\S+(?= from a rebuilt model)|(?<=solves the system of its window to )\S+| +\S+ +[\d.]+M$|(?<=the journal from record )\d+ to \d+|(?<=, )[\d.]+ s$")
# What a client's command prints is compared whole, not by its fingerprint.
recorded.PRINTED["text"] = lambda text: recorded.masked(RATES.sub("", text), EXEMPT).splitlines()
# A model that a refit made has the milliseconds that it took.
OF_REFITS = re.compile(r"(?m)^model +[0-9a-f]{32}$")


class Clock:
    """The arrival clock of the programs that are started from here."""

    def __init__(self, library, folder):
        path = os.path.join(folder, "clock")
        with open(path, "wb") as f:
            f.write(bytes(16))
        with open(path, "r+b") as f:
            self.at = (ctypes.c_double * 2).from_buffer(mmap.mmap(f.fileno(), 16))
        self.set(BEGIN)
        os.environ.update(LD_PRELOAD=library, GIVEN_CLOCK=path)

    def set(self, seconds, off=0.0):
        self.at[0], self.at[1] = seconds, off  # one store each: nobody sees half of one


class Player(recorded.Dialogue):
    """A process and its clients; the moves are those of `Dialogue` and those below."""

    def __init__(self, settings, clock):
        self.clock, self.settings, self.transcript, self.number, self.saves = clock, dict(settings), [], -1, []
        self.exempt = EXEMPT | STATE | (OF_CHECKPOINTS if settings.get("checkpoint.seconds", 1) else set())
        self.acks = self.exempt | ({"durable"} if settings.get("delivery") not in SYNCS else set())
        self.begin()

    def note(self, what, value):
        self.transcript.append([self.number, what, value])

    # ---- a life of the process

    def begin(self):
        """Subscriptions are in force, and what is retained is there."""
        self.stopped, self.seq = False, None
        self.run = Run(**self.settings)
        self.input = self.run.socket(zmq.PUSH if self.run.mode == "pull" else zmq.DEALER, "in")
        self.control = self.run.socket(zmq.DEALER, "ctl")
        self.last_words = b"stats.%s." % self.settings.get("stream", "default").encode()
        self.request("status")
        self.request("publish")
        self.events = self.run.socket(zmq.SUB, "out", RCVHWM=1000000)
        self.listen("stats.")
        self.take(once=True)
        for topic in TOPICS:
            self.listen(topic)
        self.sync()

    def listen(self, topic):
        self.events.setsockopt(zmq.SUBSCRIBE, topic.encode())

    def take(self, once=False):
        """Events up to the stats of the stream that are there already, or (`once`) up to new ones."""
        while True:
            if not self.events.poll(1000 * PATIENCE):
                raise Timeout("no event")
            topic, content = self.events.recv_multipart()
            if topic == self.last_words:
                seq = msgpack.unpackb(content)["seq"]
                if seq == self.seq and not once:
                    return
                self.seq = seq
            self.note("event", [topic.decode(), content if topic.startswith(WHOLE) else self.event_fields(topic, content)])
            if once and topic == self.last_words:
                return

    def event_fields(self, topic, content):
        """Of several messages that wait (`feed`) the later ones came later by what the others took: quarters of a second count."""
        found = [p for p in recorded.fields(content, self.exempt) if p[0] not in REMARKS]
        for pair in found if topic.startswith(b"error.") else []:
            if pair[0] == "ts":
                pair[1] = math.floor(4 * recorded.packed(pair[1]))
        return found

    def sync(self):
        """What is at work comes to its end, and its events are in. Time that has passed is a record of the journal, and it may take several:
        until there is no further one."""
        before = None
        while True:
            status = msgpack.unpackb(self.ask(self.control, STATUS))
            self.turn()
            if status.get("journal_records") == before:
                return
            before = status.get("journal_records")

    def turn(self):
        """Events come in order: one more subscription brings the retained stats after all that came before. It is not looked at in the turn
        of the process that has answered the request before, so that turn is over."""
        mark = self.last_words[:-1]
        self.events.setsockopt(zmq.SUBSCRIBE, mark)
        self.take()
        self.events.setsockopt(zmq.UNSUBSCRIBE, mark)

    def finish(self, how):
        """`kill`, `term` or `stop`."""
        self.sync()
        if how == "kill":
            self.run.process.kill()
            self.run.process.wait()
        else:
            if how == "stop":
                self.request("stop")
            else:
                self.run.process.terminate()
            self.take(once=True)
            self.note("exit code", self.run.end(None)[0])
        self.run.close()

    # ---- moves

    def request(self, op, **keys):
        reply = self.ask(self.control, [msgpack.packb(dict(keys, op=op))])
        self.answered(reply)
        return msgpack.unpackb(reply, strict_map_key=False)

    def answered(self, reply, exempt=None):
        if reply[:1] in (b"{", b"["):
            self.note("reply", recorded.masked(reply.decode(), frozenset(exempt or self.exempt)))
        else:
            self.note("reply", [p for p in recorded.reply_fields(reply, exempt or self.exempt) if p[0] not in REMARKS])

    def move(self, to, *what):
        """What is not acknowledged is there when something has been waited for."""
        if to == "in" and self.run.mode == "pull":
            super().move(to, *what)
        elif to in ("in", "ctl", "wait"):
            reply = super().move(to, *what)
            if reply is not None:
                self.answered(reply, self.acks if to == "in" else None)
            if what != (REFIT,):  # its model comes when it is waited for
                self.sync()
        elif to == "command":
            self.note("command", super().move(to, *what))
            self.sync()
        else:
            getattr(self, "move_" + to)(*what)

    def move_at(self, seconds, off=0.0):
        """Time goes on, and brings about what it does before the next move."""
        self.clock.set(seconds, off)
        self.sync()
        self.request("status")

    def move_save(self):
        self.saves.append(self.request("save").get("record", 0))

    def move_load(self, which, keys):
        self.request("load", checkpoint=self.saves[which % len(self.saves)] if self.saves else 0, **keys)
        self.sync()

    def move_hear(self, topic):
        """A subscription of its own to a topic: what is retained."""
        self.listen(topic)
        self.sync()
        self.events.setsockopt(zmq.UNSUBSCRIBE, topic.encode())

    def move_again(self, how, settings):
        """The process ends and another one goes on with its state."""
        self.finish(how)
        self.settings.update(settings)
        self.begin()

    def move_end(self, how):
        self.finish(how)

    def move_folder(self, *words):
        """A command over the state folder."""
        code, *texts = run_command(*words)
        if self.settings.get("refit", "none") != "none":
            texts = [[line for line in text if not OF_REFITS.match(line)] for text in texts]
        if self.settings.get("checkpoint.seconds", 1):
            texts = [[line for line in text if not OF_STARTS.match(line)] for text in texts]
        self.note("command", [code] + texts)

    def play(self, moves):
        for self.number, move in enumerate(moves):
            self.move(*move)


def run_command(*words, input=None):
    """Exit code, standard output and standard error without speed and memory."""
    code, *texts = command(*words, input=input)
    return [code] + [recorded.masked(RATES.sub("", text), EXEMPT).splitlines() for text in texts]


def fields(content):
    return recorded.fields(content, frozenset())


def transcript_of(settings, moves, clock):
    """All of it, or up to the failure, which is its last part. In the current folder, so that no path differs."""
    p = None
    clock.set(BEGIN)
    try:
        p = Player(settings, clock)
        p.play(moves)
        return p.transcript
    except Exception as e:  # noqa: BLE001: whatever happened is the result
        return (p.transcript if p else []) + [[p.number if p else -1, "failure", "%s: %s" % (type(e).__name__, e)]]
    finally:
        if p:
            p.close()
