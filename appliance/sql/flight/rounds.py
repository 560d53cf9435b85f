"""Rounds of ranges: what each job gets, what is left when it ends, and which record it failed on. Pure.

A round is what one attempt of a job's task has got. What it has confirmed stays, however the job ends: SQL is a
function of records. What it has not confirmed when the next attempt comes, or when the job has ended, is asked for
again, divided: if a record ends the job, it is alone after some rounds, and the job's reason is its own.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from appliance.engine.model.ranges import WEIGHT_MAX, Failure, Outcome, Range
from appliance.kafka.records.outgoing import Outgoing

_GROWTH = 8
"""Times the weight of a round whose records had no room."""

_ROUND_BYTES = 8 * 1024 * 1024
"""Bytes of batches that one job gets, and a range more."""


@dataclass(slots=True, eq=False)
class Pending:
    """A range that somebody waits for, and its progress; with ``stops``, the first record that fails ends it.

    ``open`` counts the pieces without outcome. ``done`` has the batches of the others, by first offset.
    """

    range: Range
    stops: bool
    open: int = 1
    done: dict[int, Sequence[Outgoing]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    stop: Failure | None = None

    @property
    def end(self) -> int:
        """The offset up to which it is still wanted."""
        return self.stop.offset if self.stop else self.range.end

    def fail(self, failure: Failure) -> None:
        """Take in that a record of it fails."""
        if not (self.stops or failure.damaged):
            self.failures.append(failure)
        elif failure.offset < self.end:
            self.stop = failure

    def outcome(self) -> Outcome:
        """The outcome, once no piece is open."""
        batches = [batch for first in sorted(self.done) if first < self.end for batch in self.done[first]]
        if batches and batches[-1].next_offset > self.end:
            batches[-1] = replace(batches[-1], next_offset=self.end)
        failures = sorted((each for each in self.failures if each.offset < self.end), key=lambda each: each.offset)
        records = replace(self.range, end=self.end).records
        filtered = records - sum(batch.records for batch in batches) - len(failures)
        if filtered < 0 or any(_following(batch) > self.end for batch in batches):
            raise AssertionError(f"{self.range.partition}: the SQL has returned records past offset {self.end}")
        return Outcome(tuple(batches), self.end, filtered, tuple(failures), self.stop)


@dataclass(slots=True, eq=False)
class _Piece:
    """A part of a pending range, which is asked for by itself."""

    pending: Pending
    range: Range


@dataclass(slots=True)
class Rounds:
    """The pending ranges of one task's lanes, and the round that its job has now.

    ``weight`` is the number of rows that each record of the next round counts as, at least: it grows with what the SQL
    makes of records, and halves after each round that had room, so that one large record does not slow all later ones.
    ``round_weight`` is that of the present round.
    """

    weight: int = 1
    round_weight: int = 1
    _fresh: deque[_Piece] = field(default_factory=deque)
    _doubted: deque[list[_Piece]] = field(default_factory=deque)
    """Divided rounds, in order: each is a round of its own."""
    _attempt: int = -1
    _round: dict[int, _Piece] = field(default_factory=dict)

    def add(self, pending: Iterable[Pending]) -> None:
        """Ask for these."""
        self._fresh.extend(_Piece(each, each.range) for each in pending)

    def forget(self, pending: Collection[Pending]) -> None:
        """Nobody waits for these any more."""
        self._keep(lambda piece: piece.pending not in pending)

    @property
    def ready(self) -> bool:
        """True if there is something to take; an unconfirmed round counts, since who takes has replaced its job."""
        return bool(self._fresh or self._doubted or self._round)

    @property
    def unconfirmed(self) -> list[tuple[Range, Pending]]:
        """The ranges of the present round that are not confirmed, in order."""
        return [(piece.range, piece.pending) for piece in self._round.values()]

    def take(self, attempt: int) -> list[Range]:
        """The ranges of the next round, of this attempt; the attempt before it has ended, whatever it says later."""
        self._divide()
        pieces = self._doubted.popleft() if self._doubted else self._gather()
        if self.weight == self.round_weight:  # the round before had room
            self.weight = max(1, self.weight // 2)
        self._attempt, self._round, self.round_weight = attempt, dict(enumerate(pieces)), self.weight
        return [piece.range for piece in pieces]

    def confirm(self, attempt: int, number: int, batches: Sequence[Outgoing], failed: Sequence[int] = ()) -> None:
        """The mark of a range has arrived; the SQL fails on the records at these offsets.

        Late news of a replaced attempt are ignored.
        """
        if piece := self._taken(attempt, number):
            piece.pending.done[piece.range.start] = batches
            piece.pending.open -= 1
            for offset in failed:
                piece.pending.fail(Failure(offset))
            self._keep(_is_wanted)

    def grown(self, attempt: int, number: int) -> None:
        """The SQL has made more of a range's records than they had room for: it is asked for again, with more."""
        if piece := self._taken(attempt, number):
            self.weight = max(self.weight, min(_GROWTH * self.round_weight, WEIGHT_MAX))
            self._doubted.appendleft([piece])

    def damaged(self, attempt: int, number: int, offset: int, reason: str) -> None:
        """The bytes of a range cannot be read from an offset on."""
        if piece := self._taken(attempt, number):
            self._give_up(piece, Failure(max(offset, piece.range.start), reason, damaged=True))

    def end(self, reason: str, of_record: bool) -> None:
        """The job has ended; with ``of_record``, for a reason that only its records can have."""
        alone = len(self._round) == 1 and next(iter(self._round.values()))
        if of_record and alone and alone.range.records == 1:
            self._round = {}
            self._give_up(alone, Failure(alone.range.first, reason))
        else:
            self._divide()

    def _gather(self) -> list[_Piece]:
        """Fresh pieces for one job."""
        pieces, size = [self._fresh.popleft()], 0
        while self._fresh and (size := size + pieces[-1].range.bytes) < _ROUND_BYTES:
            pieces.append(self._fresh.popleft())
        return pieces

    def _divide(self) -> None:
        """Ask again, first and in order, for what the round has not confirmed."""
        pieces, self._round = list(self._round.values()), {}
        if len(pieces) > 1:
            self._doubted.extendleft((pieces[len(pieces) // 2 :], pieces[: len(pieces) // 2]))
        elif pieces:
            self._ask_for(pieces[0].pending, pieces[0].range.halves())

    def _ask_for(self, pending: Pending, parts: Sequence[Range]) -> None:
        """Replace a piece by its parts, each a round of its own."""
        pending.open += len(parts) - 1
        self._doubted.extendleft([_Piece(pending, part)] for part in reversed(parts))

    def _give_up(self, piece: _Piece, failure: Failure) -> None:
        """Go on without a record: what is before and after it is asked for, as far as it is still wanted."""
        piece.pending.fail(failure)
        before, rest = piece.range.divide(failure.offset)
        _, after = rest.divide(failure.offset + 1)
        self._ask_for(piece.pending, [each for each in (before, after) if each.records])
        self._keep(_is_wanted)

    def _taken(self, attempt: int, number: int) -> _Piece | None:
        return self._round.pop(number, None) if attempt == self._attempt else None

    def _keep(self, wanted: Callable[[_Piece], bool]) -> None:
        """Forget the other pieces."""
        rounds = [[*self._fresh], *self._doubted, [*self._round.values()]]
        for piece in [piece for pieces in rounds for piece in pieces if not wanted(piece)]:
            piece.pending.open -= 1
        self._fresh = deque(filter(wanted, self._fresh))
        doubted = ([piece for piece in pieces if wanted(piece)] for pieces in self._doubted)
        self._doubted = deque(pieces for pieces in doubted if pieces)
        self._round = {number: piece for number, piece in self._round.items() if wanted(piece)}


def _following(batch: Outgoing) -> int:
    """The offset after its last record."""
    first, length = batch.runs[-1] if batch.runs else (batch.first_offset, batch.records)
    return first + length


def _is_wanted(piece: _Piece) -> bool:
    return piece.range.start < piece.pending.end
