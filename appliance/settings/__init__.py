"""The settings: setenv.sh as frozen dataclasses, or a list of all its faults.

- ``shell_lines``, ``env_file``: the grammar of a line, and lines to a dict.
- ``values``, ``clusters``, ``logins``, ``tunnel``, ``replication``, ``transform``, ``groups``, ``control_center``,
  ``page_login``, ``monitoring``, ``audit``: the values, each declared with its variable.
- ``variable``, ``variables``, ``role``: a declaration, the table of all of them, the roles that read them.
- ``parse``, ``parsers``: the environment to values, or to every fault.
- ``one_topic``: kafka-reo's four variables, in the place of ours.
- ``cross_checks``, ``login_checks``: faults that show only between values, or in the files that they name.
- ``target``, ``secret``: addresses and logins, and texts that are never shown.
- ``patterns``, ``strength``: patterns that reach too far, and secrets that are too weak.
- ``private_files``, ``pem_files``: files that hold secrets and SSH keys, or certificates and their keys.
- ``bound``: MAX_BYTES_PER_SECOND, read again while the replicator runs.
"""
