"""The settings: setenv.sh as frozen dataclasses, or a list of all its faults.

- ``shell_lines``, ``env_file``: the grammar of a line, and lines to a dict.
- ``values``, ``clusters``, ``logins``, ``topics``, ``transform``, ``tunnel``, ``engine``, ``monitoring``,
  ``control_center``, ``page_login``: the values, each declared with its variable.
- ``variable``, ``variables``, ``role``: a declaration, the table of all of them, the roles that read them.
- ``parse``, ``reading``, ``parsers``: the environment to values, or to every fault.
- ``order_values``, ``order``: the settings of a total order in several clusters, and their parser.
- ``one_topic``: kafka-reo's four variables, in the place of ours.
- ``cross_checks``, ``login_checks``, ``patterns``: faults that show only between values or in their files.
- ``target``, ``secret``: addresses and logins; texts that are never shown, and the guesses that they withstand.
- ``private_files``, ``pem_files``: files that hold secrets and SSH keys, or certificates and their keys.
"""
