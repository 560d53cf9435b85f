"""The faults that are tried for a release alone, each with what holds the same for every submission.

That is a test's file, or another fault of the same kind.
"""

from collections.abc import Mapping

_HISTORIES = "tests/simulation/test_histories.py"
"""Crashes at any step; requests and answers that are lost, late or refused."""

HELD_BY: Mapping[str, str] = {
    "replicator killed": "tests/spark/test_replicator.py",
    "tunnel server killed": "tunnel cut",
    "tunnel client killed": "tunnel cut",
    "executor paused": "active replicator paused until another copies",
    "replicator paused": "active replicator paused until another copies",
    "tunnel client paused": "tunnel half-open",
    "tunnel server paused": "tunnel half-open",
    "replicator paused past its transaction's timeout": "tests/real/engine/test_ownership.py",
    "active replicator stopped": "tests/spark/test_standby.py",
    "active replicator killed": "tests/spark/test_standby.py",
    "active replicator killed and back at once": "tests/spark/test_standby.py",
    "active replicator killed with its coordinator": "both replicators cut off, the standby back first",
    "active replicator and a standby of two killed": "tests/spark/test_standby.py",
    "active replicator's driver paused until another copies": "active replicator paused until another copies",
    "active replicator cut off until another copies": "both replicators cut off, the standby back first",
    "standby paused, and active replicator killed": "active replicator paused until another copies",
    "both replicators cut off, the active one back first": "both replicators cut off, the standby back first",
    "two replicators start at once": "tests/spark/test_standby.py",
    "a task of Spark tried twice": "tests/spark/test_control.py",
    "source broker killed": "tests/outages/test_leader_moves.py",
    "source leaders move": "tests/outages/test_leader_moves.py",
    "destination leaders move": "destination broker killed",
    "a source partition loses its leader": "tests/outages/test_leader_moves.py",
    "an unclean election at the destination": "tests/outages/test_lost_copies.py",
    "source connections black-holed": "tunnel half-open",
    "tunnel slow": "tests/simulation/test_lane_cases.py",
    "destination connections black-holed": "tests/outages/test_black_holes.py",
    "a Produce black-holed": "tests/outages/test_black_holes.py",
    "reset in mid-Produce": _HISTORIES,
    "reset between Produce and its answer": _HISTORIES,
    "reset between AddPartitionsToTxn and its answer": _HISTORIES,
    "reset between EndTxn and its answer": _HISTORIES,
    "crash after fetch": _HISTORIES,
    "crash after AddPartitions": _HISTORIES,
    "crash after part of the Produces": _HISTORIES,
    "crash after positions": _HISTORIES,
    "crash after EndTxn is sent but not answered": _HISTORIES,
    "crash after commit, before the task returns": _HISTORIES,
}
