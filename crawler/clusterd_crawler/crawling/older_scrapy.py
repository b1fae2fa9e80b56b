"""What Scrapy 2.15 (`run_in_thread`) and 2.18 (`sleep`) brought, for those from 2.14 on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

P = ParamSpec("P")
T = TypeVar("T")


async def sleep(seconds: float) -> None:
    """Wait for so many seconds."""
    if is_asyncio_available():
        await asyncio.sleep(seconds)
        return
    from twisted.internet import reactor  # asyncio is not there, so this reactor is installed already

    await deferLater(reactor, seconds)


async def run_in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a thread of the loop's pool; return what it returns."""
    if is_asyncio_available():
        return await asyncio.to_thread(function, *args, **kwargs)
    found: T = await maybe_deferred_to_future(deferToThread(function, *args, **kwargs))
    return found
