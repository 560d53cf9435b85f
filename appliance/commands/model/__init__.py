"""Decisions and outcomes of commands; no IO.

- ``loss``, ``torn_transactions``, ``report``: the losses of a promotion, the transactions of the source that are partly
  copied, and the outcome of a command that changes states.
- ``removal_report``: the outcomes of removing topics, and of deleting a link.
- ``position_change``, ``reset_report``: positions changed by the operator, and the outcome of a reset.
- ``lanes_report``: partitions over lanes by their load, and the outcome of changing them.
"""
