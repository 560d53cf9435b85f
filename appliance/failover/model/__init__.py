"""Decisions of failing over; no IO.

- ``group_plan``: what to commit for a group at the destination, and how far the group is there.
- ``group_checkpoints``: the groups as MirrorMaker 2's checkpoints.
- ``group_messages``: the states of groups in sentences.
- ``failback_plan``: where the link in reverse begins, and where the link goes on after it.
- ``failback_report``: the outcome of a failback.
- ``loss``, ``report``: what a promotion loses, and the outcome of a command.
"""
