"""The two prepare scripts: setenv.sh is checked, a VM's files are written, and what is left to do is said.

- ``preparation``, ``checks``, ``vm``, ``port_conflicts``, ``invented_names``: every check, or every fault at once.
- ``writing``: files, whole or not at all.
- ``report``: what the user is told.
"""
