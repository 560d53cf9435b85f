"""One run of an operator's command, and what several commands need of the link.

- ``operation``, ``runner``: the command's topics, author and consent; its plan, its options and its report.
- ``link_lanes``: the lanes of a link, fenced and changed by a command.
- ``position_facts``: the facts of both logs that decide how positions change.
- ``both_logs``, ``last_sync``: the questions to both clusters, and the last round of the groups before a promotion.
"""
