"""Work beside the work: it never ends by itself, and whatever goes wrong in it ends nothing else."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from appliance.errors import SettingsError

Work = Callable[[], Awaitable[None]]

_RETRY = 5.0


@contextlib.asynccontextmanager
async def in_background(log: logging.Logger, failure: str, **work: Work) -> AsyncIterator[None]:
    """Do all of the work, each in a task of its name, while the block runs; what fails is begun anew after a while.

    Args:
        log: where a failure is told; of one that comes again only the first is.
        failure: what to say of a defect, with ``{}`` for the name of the work.
    """
    tasks = [
        asyncio.create_task(_for_ever(one, log, failure.format(name)), name=f"{log.name} {name}")
        for name, one in work.items()
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _for_ever(work: Work, log: logging.Logger, failure: str) -> None:
    told = ""
    while True:
        try:
            await work()
        except SettingsError as error:
            if str(error) != told:
                log.warning(str(error))
            told = str(error)
        except Exception as error:  # a defect here must not end what it is beside
            if repr(error) != told:
                log.exception(failure, extra={"fields": {}})
            told = repr(error)
        await asyncio.sleep(_RETRY)
