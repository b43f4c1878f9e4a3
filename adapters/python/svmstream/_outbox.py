"""The library's outbox for Python: rows in, frames out, and the fate of each row by its number.

It has no socket and no clock: `_link` has them. What decides about sending, sending again and
numbering is `svs_outbox_*` (outbox.h); here its reports become one result for each row: a Score, or
an exception. Rows settle in the order of their numbers. The reply is unpacked once for all of its
scores; the outbox reports to which numbers they belong.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from . import errors, wire
from ._library import Error, c_text, check, failure, ffi, lib

Result = Union[wire.Score, errors.SvmstreamError]

SAMPLES, BYTES, MESSAGE, BATCH = 1_000_000, 256 << 20, 1 << 20, 4096
# What waiting does not cure: it is raised at once, and not after the timeout.
HOPELESS = ("wrong_columns", "not_durable", "not_allowed")


class MovedError(errors.SvmstreamError):
    """The process wants rows of this source again, or has other ones: go on at row `wanted`."""

    code = "gap"

    def __init__(self, text: str = "", code: Optional[str] = None, wanted: int = 0) -> None:
        super().__init__(text, code)
        self.wanted = wanted


def _event(user: Any, event: Any) -> None:
    box = ffi.from_handle(ffi.cast("struct svpy_outbox_user *", user).handle)
    _whole(box, lambda who: who._take_event(event))


def _whole(box: "Outbox", note: Callable[["Outbox"], None]) -> None:
    """A report of C, in spite of Ctrl-C, which no exception can take through C: it is kept for
    `_interrupted`. A report that is noted twice does no harm.
    """
    while True:
        try:
            return note(box)
        except KeyboardInterrupt as interrupt:
            box.interrupt = interrupt


def _event_again(kind: Any, error: Any, trace: Any) -> None:
    """Ctrl-C at the first step of `_event`, before `_whole` sees it: the report is taken again."""
    if not isinstance(error, KeyboardInterrupt):
        raise error
    given = trace.tb_frame.f_locals
    ffi.from_handle(ffi.cast("struct svpy_outbox_user *", given["user"]).handle).interrupt = error
    _event(given["user"], given["event"])


ffi.def_extern(name="svpy_outbox_event", onerror=_event_again)(_event)
_put, _LIMIT = lib.svs_outbox_put, lib.SVS_LIMIT


class Outbox:
    """One outbox. `settle(number, result)` is called once for each row, during `reply`.

    src: name of the producer; replay: its rows can be put again from any number; release: a
    constant SVS_OUTBOX_* of the library.
    """

    def __init__(self, src: str, replay: bool, release: int, columns: Optional[Sequence[str]],
                 settle: Callable[[int, Result], None]) -> None:
        options = ffi.new("svs_outbox_options *")
        lib.svs_outbox_defaults(options)
        name = c_text(src, "src")
        self._handle = ffi.new_handle(self)
        options.src, options.replay, options.release = name, replay, release
        options.samples, options.bytes = SAMPLES, BYTES
        options.message, options.batch = MESSAGE, BATCH
        self._user = ffi.new("struct svpy_outbox_user *", (self._handle, -1))
        options.user = self._user
        options.window = 1_000_000  # the process's credit decides
        options.notify = lib.svpy_outbox_event
        options.score = ffi.addressof(lib, "svpy_outbox_score")
        self._err = Error()
        self._box = lib.svs_outbox_new(options, self._err)
        if self._box == ffi.NULL:
            raise failure(self._err)
        self._bytes, self._size = ffi.new("const void **"), ffi.new("size_t *")
        self._figures = ffi.new("svs_outbox_figures *")
        self._settle, self._replay, self._src = settle, replay, src
        self._next = self._end = 0          # numbers of the rows that have no result yet
        self._known = False                 # the next row put has the number _end
        self._putting = -1                  # number of a row that is put, or was not
        self._refusals: List[Tuple[int, int, int, str, str]] = []
        self._given_up: Dict[int, errors.SvmstreamError] = {}
        self.later: Optional[Tuple[str, str]] = None  # (code, reason): nothing is taken for now
        self.losses: List[str] = []  # sentences about rows that a process no longer has
        self.moved: Optional[MovedError] = None
        self.interrupt: Optional[KeyboardInterrupt] = None  # Ctrl-C during a report of C
        if columns:
            texts = [c_text(c, "the column") for c in columns]
            check(lib.svs_outbox_columns(self._box, ffi.new("char *[]", texts), len(texts),
                                         self._err), self._err)

    def free(self) -> None:
        pointer = ffi.new("svs_outbox **", self._box)
        lib.svs_outbox_free(pointer)
        self._box = ffi.NULL

    # ---- in

    @property
    def wanted(self) -> int:
        """The number of the row to put next; -1: not known yet (with replay, before the first
        answer).
        """
        return int(lib.svs_outbox_wanted(self._box))

    @property
    def place(self) -> Optional[bytes]:
        """The cursor at the process's position."""
        found = lib.svs_outbox_place(self._box, self._size)
        return None if found == ffi.NULL else bytes(ffi.buffer(found, self._size[0]))

    @property
    def waiting(self) -> int:
        """How many rows have no result yet."""
        if self._putting >= 0:
            self._catch_up()
        return self._end - self._next

    def put(self, row: bytes, cursor: Union[None, bytes, str] = None) -> Optional[int]:
        """The number of the row; None: full, or it is not known yet which row is wanted. Raises for
        a bad row.
        """
        if self._putting >= 0:
            self._catch_up()
        number = self._end if self._known else self.wanted
        if number < 0:
            return None
        if cursor is not None:
            if not isinstance(cursor, (str, bytes, bytearray, memoryview)):
                raise errors.WrongTypeError("cursor is a %s; it is bytes or a string"
                                            % type(cursor).__name__)
            data = (cursor.encode("utf-8", "surrogatepass") if isinstance(cursor, str)
                    else bytes(cursor))
            check(lib.svs_outbox_cursor(self._box, data, len(data), self._err), self._err)
        self._putting = number
        code = _put(self._box, row, len(row), self._err)
        if code == _LIMIT:
            return None
        if code:
            lib.svs_outbox_cursor(self._box, ffi.NULL, 0, self._err)
            raise failure(self._err)
        if not self._known:  # the first one; later a reply alone moves it, which _follow sees
            self._next, self._known = number, True
        self._end, self._putting = number + 1, -1
        return number

    def _catch_up(self) -> None:
        """After `put` ended by an exception. Ctrl-C may come between the row, which C has, and its
        end here: without it the next reply would look as if another producer had sent the row.
        """
        number = self._putting
        if self.wanted > number:
            if not self._known:
                self._next, self._known = number, True
            self._end = number + 1
        self._putting = -1

    # ---- out

    def frame(self, now: float) -> Any:
        """The bytes to send now, valid until the next call, or None. `sent` follows when the socket
        has them.
        """
        found = lib.svs_outbox_frame(self._box, now, self._bytes, self._size)
        self._interrupted()
        return ffi.buffer(self._bytes[0], self._size[0]) if found else None

    def _interrupted(self) -> None:
        interrupt, self.interrupt = self.interrupt, None
        if interrupt is not None:
            raise interrupt

    def sent(self, now: float) -> None:
        lib.svs_outbox_sent(self._box, now)

    def broken(self, now: float) -> None:
        lib.svs_outbox_broken(self._box, now)

    def wait(self, now: float) -> float:
        """Seconds until there is a frame without a further reply."""
        return float(lib.svs_outbox_wait(self._box, now))

    def leave(self) -> None:
        lib.svs_outbox_leave(self._box)

    @property
    def done(self) -> bool:
        return bool(lib.svs_outbox_done(self._box))

    @property
    def delivered(self) -> bool:
        """Is every row answered for, and on disk if the process keeps its state? Also where the
        process has ended.
        """
        f = self.status()
        return self.done or (f.kept == 0 and f.durable < 0)

    def status(self) -> Any:
        """svs_outbox_figures, valid until the next call."""
        lib.svs_outbox_status(self._box, self._figures)
        return self._figures

    def figures(self) -> Dict[str, int]:
        """The figures of outbox.h as a dict."""
        f = self.status()
        return {name: int(getattr(f, name)) for name in dir(f)}

    # ---- replies

    def _take_event(self, event: Any) -> None:
        if event.kind == lib.SVS_OUTBOX_ACKED:
            self.later = None
            return
        code, reason = (ffi.string(text).decode("utf-8", "replace")
                        for text in (event.code, event.reason))
        if event.kind == lib.SVS_OUTBOX_REFUSED:
            self._refusals.append((event.first, event.last, event.count, code, reason))
        elif event.kind == lib.SVS_OUTBOX_LATER:
            self.later = (code, reason)
        elif event.count > 0 and not self._replay:
            self.losses.append("%d acknowledged rows of %s are lost: %s"
                               % (event.count, self._src, reason))

    def note_given_up(self) -> None:
        """After `frame`: rows that are larger than the process takes."""
        for first, _, _, code, reason in self._refusals:
            self._given_up[first] = errors.by_code(code, reason)
        self._refusals.clear()

    def reply(self, data: bytes, now: float) -> None:
        """Processes a reply: settles the rows that it answers for."""
        if self._putting >= 0:
            self._catch_up()
        if self._refusals:
            self.note_given_up()
        self._user.first = -1
        check(lib.svs_outbox_reply(self._box, data, len(data), now, self._err), self._err)
        strange: Optional[Exception] = None
        if self._next < self._end:
            if self._user.first >= 0 or self._refusals:
                try:
                    self._take_elements(wire.unpack_map(data, "a reply"))
                except (AttributeError, LookupError, StopIteration, TypeError, ValueError,
                        errors.FileError) as reason:
                    strange = reason  # the outbox takes the rows for answered all the same
            self._take_mark()
        self._follow()
        self._refusals.clear()
        self._interrupted()
        if strange is not None:
            raise errors.NotMsgpackError("a reply whose scores are not scores: %s" % strange)

    def _take_elements(self, reply: Dict[str, Any]) -> None:
        """Results that the reply has for each of its rows."""
        elements = reply.get("scores")
        if not elements:
            return
        if self._user.first >= 0:
            base = self._user.first - next(i for i, e in enumerate(elements) if "id" in e)
        else:
            base = self._refusals[-1][1] + 1 - len(elements)
        settle, given_up, score = self._settle, self._given_up, wire.Score
        for number, element in enumerate(elements, base):
            if not self._next <= number < self._end:
                continue
            while self._next < number:
                self._settle_unknown()
            self._next = number + 1
            if "id" in element:
                settle(number, score(element, "", b"", number))
            elif "error" in element:
                error = errors.by_code(element.get("code", ""), element["error"])
                settle(number, given_up.pop(number, error))
            else:
                note = "taken before" if "duplicate" in element else "left out by `missing`"
                settle(number, wire.Score(element, "", b"", number, note))

    def _take_mark(self) -> None:
        """Rows that are answered for, and of which the reply says no more."""
        f = self.status()
        mark = min(self.wanted - f.kept + f.taken, self._end)
        while self._next < mark:
            self._settle_unknown()

    def _settle_unknown(self) -> None:
        number, self._next = self._next, self._next + 1
        result: Optional[Result] = None
        if number in self._given_up:
            result = self._given_up.pop(number)
        for first, last, count, code, reason in self._refusals:
            if result is None and first <= number <= last:
                text = reason if count == last - first + 1 else (
                    "%d of the rows %d to %d were refused, this one maybe: %s"
                    % (count, first, last, reason))
                result = errors.by_code(code, text)
        self._settle(number, result
                     or wire.Score({}, "", b"", number,
                                   "the reply with its score was lost, or too large"))

    def _follow(self) -> None:
        """With replay: the process may want earlier rows again, or have later ones; rows put so far
        are dropped.
        """
        if not self._replay:
            return
        wanted = self.wanted
        if wanted == self._end:
            return
        known, before = self._end > 0 or self._next > 0, self._end
        text = ("the process wants row %d of %s next, and not row %d: it was started again "
                "without the rows after that "
                "(see its settings state.dir and delivery), or another producer uses this name. "
                "Send from row %d on "
                "(stream.wanted), or open the Stream with replay=False where rows cannot be read "
                "again"
                % (wanted, self._src, before, wanted))
        moved = MovedError(text, wanted=wanted)
        while self._next < self._end:
            self._next += 1
            self._settle(self._next - 1, moved)
        if known and before > 0 and self.figures()["put"] > 0:
            self.moved = moved
        self._next = self._end = wanted
