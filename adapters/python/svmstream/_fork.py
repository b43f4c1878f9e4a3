"""Learners after os.fork(): those with a thread of C cannot work in the child, and say so there."""
from __future__ import annotations

import os
import threading
import weakref
from typing import Any

from . import errors
from ._library import ffi

LIVE: "weakref.WeakSet[Any]" = weakref.WeakSet()  # all learners of this process


class _Forked:
    """The lock of a learner that cannot work in a process after os.fork: its worker thread is not
    there, or another thread was inside of a call.
    """

    def __enter__(self) -> None:
        raise errors.UnavailableError(
            "this learner was made before os.fork() and cannot be used in the child: send it "
            "there by pickle (as joblib and multiprocessing's start method spawn do), or make it "
            "there"
        )

    def __exit__(self, *_: Any) -> None:
        pass


def _after_fork() -> None:
    """In the child: learners with a worker thread are void, the others get a new lock."""
    for stream in list(LIVE):
        free_lock = not isinstance(stream._lock, _Forked) and stream._lock.acquire(blocking=False)
        if not free_lock or stream._worker or stream.setting("threads") != "1":
            ffi.gc(stream._handle, None)  # freeing it would wait for the thread
            stream._lock = _Forked()
        else:
            stream._lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)
