import asyncio
from argparse import Namespace
from typing import Any

import pytest

from appliance.errors import ApplianceError
from appliance.settings.parse import parse
from appliance.settings.role import Role
from appliance.verify import command
from tests.support.settings import REQUIRED, SECRET
from tests.unit.verify.test_work import job_of


async def test_a_verification_that_is_stopped_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stopping = asyncio.Event()
    settings: Any = None

    async def verify(*_: object) -> None:
        stopping.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(command, "_verify", verify)
    with pytest.raises(ApplianceError, match="stopped before the end: nothing is verified"):
        await command.verify(settings, Namespace(order=False, resume=None), stopping)


@pytest.mark.parametrize(
    ("spark", "tasks", "master", "offsets", "has_sql", "shared"),
    [
        ("auto", "2", "local[*]", 10**9, False, False),
        ("auto", "2", "local[*]", 999_999, True, False),
        ("auto", "2", "local[*]", 1_000_000, True, True),
        ("auto", "1", "local[*]", 10**9, True, False),
        ("no", "2", "local[*]", 10**9, True, False),
        ("yes", "1", "local[*]", 1, True, True),
        ("yes", "1", "local[*]", 1, False, True),
        ("auto", "2", "spark://10.0.0.1:7077", 4_000_000, False, True),
        ("auto", "2", "spark://10.0.0.1:7077", 3_999_999, False, False),
        ("yes", "2", "spark://10.0.0.1:7077", 10**9, True, False),
    ],
)
def test_the_tasks_of_spark_verify_as_wished_or_where_there_is_much_to_read(
    spark: str, tasks: str, master: str, offsets: int, has_sql: bool, shared: bool
) -> None:
    variables = {"SPARK_MASTER": master, "TASKS": tasks, "SPARK_AUTHENTICATE_SECRET": SECRET}
    settings = parse({**REQUIRED, **variables}, Role.REPLICATOR)
    assert command._is_shared(settings, Namespace(spark=spark), [job_of(offsets, 1)], has_sql=has_sql) is shared
