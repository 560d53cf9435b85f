"""The audit table as a log of writes in a store: claimed, written, merged and removed. It waits for the store."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from appliance.audit.model.files import Claim, DataFile, Listing, claim_name, decode_claim, encode_claim, listing
from appliance.audit.model.rows import AuditRow
from appliance.audit.model.state import AuditState
from appliance.audit.model.table import encode_rows, merged, state_of
from appliance.audit.store import Store


@dataclass(frozen=True, slots=True)
class Opened:
    """The state after the last complete write, the number of the newest claim, and that claim if it has no file."""

    state: AuditState
    number: int
    unfinished: Claim | None = None


class AuditLog:
    """The writes of one table; several writers may use it, and each write has one.

    After StorageFailed the outcome of a write is unknown: open the log again.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(self) -> Opened:
        """Find the last write; PeerError if a file is damaged, or a newer release's."""
        files = listing(self._store.sizes())
        last, claimed = files.last, max(files.claims, default=0)
        state = state_of(self._store.read(last.name)) if last else AuditState()
        written = last.last if last else 0
        if claimed <= written:
            return Opened(state, written)
        return Opened(state, claimed, decode_claim(claimed, self._store.read(claim_name(claimed))))

    def claim(self, claim: Claim) -> bool:
        """Claim a write; False if another writer has it."""
        return self._store.create(claim.name, encode_claim(claim))

    def write(self, claim: Claim, rows: Sequence[AuditRow], state: AuditState) -> None:
        """Write the file of our claim, or of one whose writer was killed."""
        self._store.replace(claim.file, encode_rows(rows, state))

    def tidy(self, today: date, retention_days: int) -> Listing:
        """Merge small files, and remove those that were merged or are too old; the files as they were before.

        A merge that is killed leaves both: the merged file holds, and the others are removed the next time.
        """
        files = listing(self._store.sizes())
        for each in (*files.replaced, *files.expired(today, retention_days)):
            self._store.remove(each.name)
        for number in files.old_claims():
            self._store.remove(claim_name(number))
        gone = set(files.expired(today, retention_days))
        small = [each for each in files.to_merge(today) if each not in gone]
        if len(small) > 1:
            whole = DataFile(small[0].day, small[0].first, small[-1].last)
            self._store.replace(whole.name, merged([self._store.read(each.name) for each in small]))
            for each in small:
                self._store.remove(each.name)
        return files


def data_files(store: Store) -> list[DataFile]:
    """The files that hold the rows now."""
    return listing(store.sizes()).holding
