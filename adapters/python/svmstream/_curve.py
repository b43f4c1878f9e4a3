"""CURVE keys from the files of `svmstream curve`, by the rules of the program: a secret that others
can read, or a public key that others can write, is refused.
"""
from __future__ import annotations

import os
import re
import stat
from typing import Any, NamedTuple, Optional, Union

import zmq
from zmq.utils import z85

from . import errors

SIZE = 4096  # the largest key file, bytes
# The keys printed in the manual page zmq_curve(7), which protect nothing.
PUBLISHED = ("Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID", "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs",
             "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7", "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6")
KEY = re.compile(r"[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}")

Path = Union[str, "os.PathLike[str]"]


class Identity(NamedTuple):
    """The keys that a client's sockets need."""

    public: bytes
    secret: bytes
    server: bytes

    def apply(self, socket: Any) -> None:
        socket.curve_serverkey = self.server
        socket.curve_publickey, socket.curve_secretkey = self.public, self.secret


def _read(path: str, secret: bool) -> str:
    """A small regular file that no other user could read (secret), or change."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as reason:
        absent = isinstance(reason, FileNotFoundError)
        hint = "; `svmstream curve new` creates a key file" if absent else ""
        raise errors.FileError("%s: %s%s" % (path, reason.strerror, hint)) from None
    try:
        # Of the open file: the path could be exchanged between a check and the opening.
        facts = os.fstat(fd)
        why = ""
        if not stat.S_ISREG(facts.st_mode):
            why = "not a regular file"
        elif facts.st_uid not in (os.geteuid(), 0) and os.geteuid() != 0:
            why = "owned by another user: chown it, or run as that user"
        elif secret and facts.st_mode & 0o077:
            why = ("other users can read this secret key: chmod 600 it, and make a new key if "
                   "somebody may have read it")
        elif not secret and facts.st_mode & 0o022:
            why = "other users can write it: chmod go-w it"
        elif facts.st_size >= SIZE:
            why = "too large for this kind of file"
        if why:
            raise errors.FileError("%s: %s" % (path, why))
        return os.read(fd, SIZE).decode("utf-8", "replace")
    finally:
        os.close(fd)


def _find(text: str, name: str) -> Optional[str]:
    """The value of the line `name = "value"`, which occurs once."""
    found = re.findall(r'^[ \t]*%s[ \t]*=[ \t]*"([^"\n]*)"' % name, text, re.M)
    return found[0] if len(found) == 1 and KEY.fullmatch(found[0]) else None


def _refuse_published(where: str, *keys: str) -> None:
    if set(keys) & set(PUBLISHED):
        raise errors.InputError("%s: this key is printed in the manual of CURVE and protects "
                                "nothing: create one with `svmstream curve new`" % where)


def _pair(path: str) -> "tuple[str, str]":
    try:
        text = _read(path, True)
    except errors.FileError:
        if path.endswith(".pub") and os.path.isfile(path):
            raise errors.FileError("%s: this is the public key: give the file without .pub, "
                                   "which has the secret key"
                                   % path) from None
        raise
    public, secret = _find(text, "public-key"), _find(text, "secret-key")
    if public is None or secret is None:
        raise errors.InputError("%s: not a key file, or damaged; `svmstream curve new` creates one"
                                % path)
    _refuse_published(path, public, secret)
    if zmq.curve_public(secret.encode()) != public.encode():
        raise errors.InputError("%s: the public key does not match the secret key, so the file is "
                                "damaged: restore it from a copy, or create a key with "
                                "`svmstream curve new`" % path)
    return public, secret


def _server(given: str) -> str:
    """A public key as it is, or that of a file."""
    if os.path.exists(given):
        key = _find(_read(given, False), "public-key")
        if key is None:
            raise errors.InputError("%s: it contains no public key or is damaged" % given)
        _refuse_published(given, key)
        return key
    decode: Any = z85.decode
    try:
        good = KEY.fullmatch(given) is not None and len(decode(given)) == 32
    except ValueError:
        good = False
    if not good:
        raise errors.InputError("curve_server: %r is neither a public key (40 characters of Z85) "
                                "nor an existing file"
                                % given)
    _refuse_published("curve_server", given)
    return given


def identity(curve: Union[None, bool, Path], server: Optional[Path]) -> Optional[Identity]:
    """The keys for `curve` (a key file; True: svmstream.key in the current folder) and
    `curve_server`.
    """
    if curve is None or curve is False or curve == "off":
        if server is not None:
            raise errors.SettingError("curve_server is set, but curve is off: give the key file "
                                      "of this process with curve=FILE")
        return None
    if server is None:
        raise errors.SettingError("curve needs the public key of the server: give "
                                  "curve_server=KEY (`svmstream curve show` on the server prints "
                                  "it)")
    if not zmq.has("curve"):
        raise errors.UnavailableError("this libzmq has no CURVE: install one that is built with "
                                      "libsodium")
    path = "svmstream.key" if curve is True or curve == "on" else os.fspath(curve)
    public, secret = _pair(path)
    return Identity(public.encode(), secret.encode(), _server(os.fspath(server)).encode())
