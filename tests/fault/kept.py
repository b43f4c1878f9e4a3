"""What the tests of a kept state look at: its fingerprint, and the events that went out."""
import hashlib
import re

import msgpack
import zmq

from live import command, context


class Events:
    """What a subscriber saw: (kind, seq) -> fingerprint. A model that is retained for who comes late is left out."""

    def __init__(self):
        self.seen, self.remarks, self.epoch = {}, [], None

    def listen(self, address):
        self.socket = context.socket(zmq.SUB)
        for option, value in ((zmq.LINGER, 0), (zmq.RCVHWM, 0), (zmq.RECONNECT_IVL, 1)):
            self.socket.setsockopt(option, value)
        for kind in (b"score.", b"alert.", b"model."):
            self.socket.setsockopt(zmq.SUBSCRIBE, kind)
        self.socket.connect(address)
        self.models = 0

    def take(self, wait=0):
        while self.socket.poll(wait):
            topic, payload = self.socket.recv_multipart()
            event = msgpack.unpackb(payload, strict_map_key=False)
            kind, seq, epoch = topic.split(b".")[0], event["seq"], event.pop("epoch")
            self.models += kind == b"model"
            if kind == b"model" and self.models == 1:
                continue
            print_ = hashlib.blake2b(msgpack.packb(event), digest_size=16).digest()
            if self.seen.setdefault((kind, seq), print_) != print_:
                self.remarks.append(("another event with the same number", kind, event))
            if self.epoch not in (None, epoch):
                self.remarks.append(("another epoch", self.epoch, epoch))
            self.epoch = epoch

    def close(self, wait=5):
        self.take(wait)
        self.socket.close(0)


def newest(path):
    """Hash of the newest checkpoint."""
    code, out, err = command("state", "show", path)
    found = re.findall(r"^checkpoint-.* state ([0-9a-f]{32})$", out, re.M)
    if code != 0 or not found:
        raise ValueError("state show %s: %d %s %s" % (path, code, out, err))
    return found[-1]
