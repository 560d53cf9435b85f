"""The answers of a scripted coordinator to the end of a transaction."""

from typing import cast

import pytest
from kio.schema.end_txn.v3 import EndTxnResponse
from kio.schema.errors import ErrorCode

from appliance.errors import ApplianceError, BrokerRefused, Fenced, OutcomeUnknown
from appliance.kafka.client.connection import BrokerConnection
from appliance.kafka.client.transactions import Producer, end_transaction, milliseconds

PRODUCER = Producer("link.lane-3", 4000, 9)


class Coordinator:
    """A coordinator that answers each request with the same code."""

    def __init__(self, code: ErrorCode) -> None:
        self._code = code

    async def call(self, *_: object) -> EndTxnResponse:
        return EndTxnResponse(throttle_time=milliseconds(0), error_code=self._code)


async def refused(code: ErrorCode) -> ApplianceError:
    with pytest.raises(ApplianceError) as caught:
        await end_transaction(cast("BrokerConnection", Coordinator(code)), PRODUCER, 1.0)
    return caught.value


async def test_case_30_a_coordinator_that_cannot_say_whether_it_committed_leaves_the_outcome_unknown() -> None:
    # It answers so while another producer takes the id. Before, this ended the replicator, like a permanent refusal.
    error = await refused(ErrorCode.unknown_server_error)
    assert type(error) is OutcomeUnknown
    assert error.retriable


async def test_a_commit_that_another_epoch_has_overtaken_is_fenced() -> None:
    assert type(await refused(ErrorCode.producer_fenced)) is Fenced


async def test_a_commit_of_no_transaction_is_refused() -> None:
    error = await refused(ErrorCode.invalid_txn_state)
    assert type(error) is BrokerRefused
    assert not error.retriable
