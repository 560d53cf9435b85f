"""That a copy is whole, which is found out after it was timed, and without which its time says nothing."""

from bench.lib.clusters import Pair
from bench.lib.copying import Copying
from bench.lib.counting import count
from bench.lib.filling import Load


async def require_whole(pair: Pair, copying: Copying, load: Load) -> None:
    """Nothing, when the copy holds as many records as a consumer is given of the load.

    Raises:
        ProcessFailed: it holds more or less, or cannot be read.
    """
    copied = await count(pair.destination, copying.topic, load.partitions)
    if copied != load.visible:
        raise copying.process.failure(f"copied {copied} records of {load.visible}")
