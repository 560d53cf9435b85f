"""Decisions of the groups' sync; no IO.

- ``group_plan``: a group's commits at the destination, its progress there, and MirrorMaker 2's checkpoints.
- ``newest_groups``: the last seen groups, and their states in sentences.
"""
