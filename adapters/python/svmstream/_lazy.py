"""What `send_many` returns. Rows are sent as it is iterated: one that never is gets a warning."""
from __future__ import annotations

from typing import Any, Iterator, TypeVar

from ._warning import warn

T = TypeVar("T")


class Lazy(Iterator[T]):
    """An iterator, also an asynchronous one, that warns if it was never begun. A loop runs over
    the generator itself, at no cost a row.
    """

    def __init__(self, generator: Any) -> None:
        self._generator, self._begun = generator, False

    def _begin(self) -> Any:
        self._begun = True
        return self._generator

    def __iter__(self) -> Iterator[T]:
        return iter(self._begin())

    def __next__(self) -> T:
        found: T = next(self._begin())
        return found

    def close(self) -> None:
        """Ends it: what was not sent is not sent."""
        self._begin().close()

    def __repr__(self) -> str:  # a notebook shows it, and keeps it alive
        state = "under way" if self._begun else "nothing was sent yet: iterate it"
        return "<scores of send_many, %s>" % state

    def __del__(self) -> None:
        if not self._begun:
            warn(
                "send_many was never iterated, so nothing was sent: `for score in "
                "stream.send_many(rows)`, or list(...) of it",
                RuntimeWarning,
            )
            self._begun = True


class AsyncLazy(Lazy[T]):
    """The same for `async for`."""

    def __aiter__(self) -> Any:
        return self._begin().__aiter__()

    async def __anext__(self) -> T:
        found: T = await self._begin().__anext__()
        return found

    async def aclose(self) -> None:
        """Ends it: what was not sent is not sent."""
        await self._begin().aclose()

    def __iter__(self) -> Iterator[T]:
        self._begun = True
        raise TypeError("send_many of an AsyncStream is iterated by `async for`")
