"""The text of setenv.sh becomes frozen dataclasses, or one list of all its faults.

The way of a value: ``shell_lines`` (the grammar of a line) -> ``env_file`` (lines to a dict) -> ``parse`` (through the
table of ``variables``, each entry with one of the ``parsers``) -> ``agreement`` (what only shows when values are seen
together) -> ``values``.
"""
