from dataclasses import replace

from appliance.replicator.model.chunk import LedgerRow
from appliance.replicator.model.ledger import Ledger

ROW = LedgerRow("orders", 4, 1, 100, 110, 10, 900, 2, 1, 1_700_000_000_000)


def test_what_was_copied_is_summed_up_since_the_last_time_it_was_taken() -> None:
    ledger = Ledger()
    later = replace(ROW, first_offset=110, next_offset=130, records=20, bytes=2_000, committed=ROW.committed + 25)
    ledger.add([ROW, replace(ROW, partition=5)])
    ledger.add([later])
    whole = LedgerRow("orders", 4, 1, 100, 130, 30, 2_900, 4, 2, ROW.committed + 25)
    assert ledger.take() == [whole, replace(ROW, partition=5)]
    ledger.add([later])
    assert ledger.take() == [later]
    assert ledger.take() == []
