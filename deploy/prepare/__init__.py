"""The two prepare scripts: they check setenv.sh, write a VM's files, and say what is left to do.

- ``preparation``, ``checks``, ``vm``, ``port_conflicts``: every check, or every fault at once.
- ``writing``: files, whole or not at all.
- ``report``: what the user is told.
"""
