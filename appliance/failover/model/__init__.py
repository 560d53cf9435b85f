"""Decisions of failing over; no IO.

- ``group_plan``: what to commit for a group at the destination, how far it is there, and MirrorMaker 2's checkpoints.
- ``newest_groups``: the groups as they were seen last, and their states in sentences.
- ``failback_plan``: where the link in reverse begins, and where the link goes on after it.
- ``failback_report``: the outcome of a failback.
- ``removal_report``: the outcomes of giving up topics, and a link.
- ``torn_transactions``: transactions of the source that were copied in part.
- ``loss``, ``report``: what a promotion loses, and the outcome of a command.
"""
