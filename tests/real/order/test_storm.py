"""Minutes of faults at random on clusters with one order."""

from pathlib import Path

import pytest

from tests.support.order_storm import storm

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.release]


@pytest.mark.parametrize(("clusters", "seed"), [(3, 41), (5, 42)])
async def test_the_order_is_one_after_ten_minutes_of_faults(clusters: int, seed: int, tmp_path: Path) -> None:
    await storm(clusters, 10, seed, tmp_path)
