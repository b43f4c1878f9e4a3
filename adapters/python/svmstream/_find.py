"""All addresses of a process, found from any one of them."""
from __future__ import annotations

import time
from typing import Any, Dict, List, Optional, Tuple

import zmq

from . import _packing, errors, wire
from ._curve import Identity
from ._link import Dialer, Steps, refusal

DEFAULT_PORTS = {"in": 5555, "out": 5556, "ctl": 5557}


def _split(address: str) -> Tuple[str, Optional[int]]:
    """(host, port) of tcp://host:port, tcp://host, host:port or host."""
    rest = address[6:] if address.startswith("tcp://") else address
    host, colon, port = rest.rpartition(":")
    if rest.startswith("[") and rest.endswith("]") or not colon or ("]" not in rest
                                                                    and ":" in host):
        host, port = rest, ""
    if not host or "/" in host or (port and (not port.isdigit() or not 0 < int(port) < 65536)):
        raise errors.InputError("%r is no address; it is like tcp://host, tcp://host:5557 or "
                                "ipc:///path" % address)
    if ":" in host and not host.startswith("["):
        host = "[%s]" % host
    return host, int(port) if port else None


def candidates(address: str) -> List[str]:
    """Where `ctl` may be, the most likely first, if `address` is any one of the addresses of a
    process.
    """
    if "://" in address and not address.startswith("tcp://"):
        return [address]
    host, port = _split(address)
    ports = [DEFAULT_PORTS["ctl"]] if port is None else [port, port + 2, port + 1,
                                                         DEFAULT_PORTS["ctl"]]
    return ["tcp://%s:%d" % (host, p) for p in dict.fromkeys(ports) if p < 65536]


def _reached(addresses: Dict[str, Any], ctl: str) -> Dict[str, Dict[str, Any]]:
    """The addresses of a status, with the host under which `ctl` was reached in the place of `*`.
    """
    host = _split(ctl)[0] if ctl.startswith("tcp://") else "*"
    try:
        found = {str(key): dict(entry) for key, entry in addresses.items()}
        if not all(isinstance(e.get("address"), (str, type(None))) for e in found.values()):
            raise TypeError("an address is a string")
    except (AttributeError, TypeError, ValueError):
        raise errors.FileError("%s: the peer is not svmstream: its addresses are %.80r"
                               % (ctl, addresses)) from None
    for entry in found.values():
        if entry.get("address"):
            entry["address"] = entry["address"].replace("tcp://*:", "tcp://%s:" % host)
    return found


def find(context: Any, address: str, identity: Optional[Identity], timeout: float) -> Steps:
    """Steps that return {"in", "out", "ctl": {"address", "mode"}} of the process of which `address`
    is one.
    """
    tried = candidates(address)
    port = None if not tried[0].startswith("tcp://") else _split(tried[0])[1]
    begin = time.monotonic()
    request = _packing.pack({"op": "status"})
    dialers: List[Dialer] = []
    only_in = False
    try:
        for candidate in tried:
            dialers.append(Dialer(context, zmq.DEALER, candidate, identity))
            dialers[-1].socket.send(request, zmq.NOBLOCK)
        while True:
            for dialer in dialers:
                dialer.look()
                try:
                    reply = wire.unpack_map(dialer.socket.recv_multipart(zmq.NOBLOCK)[-1],
                                            dialer.address)
                except zmq.Again:
                    continue
                if "addresses" in reply:
                    entries = _reached(reply["addresses"], dialer.address)
                    ports = [str(e.get("address")).rpartition(":")[2] for e in entries.values()]
                    # Another process may own the default port: only one that has the given address
                    # is ours.
                    if dialer is dialers[0] or str(port) in ports:
                        entries.setdefault("ctl", {"mode": "router"})["address"] = dialer.address
                        return entries
                elif reply.get("code") == "unknown_op" and dialer is dialers[0]:
                    only_in = True
                elif "error" in reply and dialer is dialers[0]:
                    raise refusal(reply, "%s: " % dialer.address)
            passed = time.monotonic() - begin
            if only_in and passed > min(1.0, timeout):
                return {"in": {"address": tried[0], "mode": "router"}}
            if dialers[0].hopeless:
                raise errors.NotAllowedError(dialers[0].why("ctl", "control"))
            if passed >= timeout:
                others = "" if len(tried) == 1 else (
                    "; its `ctl` was looked for at %s too: give ctl=ADDRESS" % ", ".join(tried[1:]))
                raise errors.TimedOutError("%s (no answer within %.3g s%s)"
                                           % (dialers[0].why("ctl", "control"), timeout, others))
            until = 1.0 if only_in else timeout
            yield [s for d in dialers for s in d.sockets], max(0.001, min(until, timeout) - passed)
    finally:
        for dialer in dialers:
            dialer.close()
