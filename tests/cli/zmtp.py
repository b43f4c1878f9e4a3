"""A peer that speaks ZMTP 3 without libzmq and without keys: it need not finish anything."""
import socket

from live import PATIENCE


def frame(body, more=True):
    size = len(body)
    return bytes([more + 2 * (size > 255)]) + (size.to_bytes(8, "big") if size > 255 else bytes([size])) + body


def ready(kind):
    name, value = b"Socket-Type", kind.encode()
    body = b"\x05READY" + bytes([len(name)]) + name + len(value).to_bytes(4, "big") + value
    return b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(16 + 32) + b"\x04" + bytes([len(body)]) + body


def raw_peer(address, kind, source=None):
    """A connection whose handshake is complete. `source`: the address that it comes from."""
    transport, _, place = address.partition("://")
    if transport == "ipc":
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(PATIENCE)
        s.connect(place)
    else:
        host, port = place.split(":")
        s = socket.create_connection((host, int(port)), PATIENCE, source)
    s.sendall(ready(kind))
    theirs = b""  # who goes on before the handshake is complete is refused for that
    while len(theirs) < 66 or len(theirs) < 66 + theirs[65]:
        got = s.recv(1)
        assert got, "no handshake"
        theirs += got
    return s
