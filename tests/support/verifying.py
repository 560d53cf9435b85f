"""A whole verification in the test's own process."""

import re
import time
from collections.abc import Callable, Collection

from appliance.verify.collecting import Tally
from appliance.verify.model.report import PartitionResult
from appliance.verify.sql import Evaluate
from appliance.verify.verification import Verification
from appliance.verify.work import Job


async def results_of(
    run: Verification,
    topics: Collection[str],
    wait: float,
    evaluate: Evaluate | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
) -> list[PartitionResult]:
    """The results of these source topics, or of all; the destination gets ``wait`` seconds to catch up."""
    deadline = time.monotonic() + wait
    plan = await run.plan("\n".join(map(re.escape, topics)))
    tally, results = Tally(plan.jobs, progress), list[PartitionResult]()

    def found(job: Job, result: PartitionResult) -> None:
        results.append(result)
        tally.reached(job, job.source.end)

    checker = run.checker(await run.sql(plan), evaluate)
    await checker.check(plan.jobs, deadline - time.monotonic(), found, tally.reached)
    return await run.ended(plan, results, deadline)
