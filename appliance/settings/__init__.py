"""From the text of setenv.sh to frozen dataclasses, or to one list of all its faults.

- ``shell_lines``, ``env_file``: the grammar of a line, and lines to a dict.
- ``variables``, ``variable``, ``role``: every variable, and the roles that need it.
- ``parse``, ``parsers``: the environment to values, or to every fault.
- ``cross_checks``: faults that show only between values.
- ``values``, ``target``, ``login``, ``secret``: the values.
- ``patterns``, ``strength``: patterns that reach too far, and secrets that are too weak.
- ``private_file``, ``key_files``: files that hold secrets and SSH keys.
- ``bound``: MAX_BYTES_PER_SECOND, read again while the replicator runs.
"""
