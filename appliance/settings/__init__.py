"""From the text of setenv.sh to frozen dataclasses, or to one list of all its faults.

A value's way: ``shell_lines`` (the grammar of a line) -> ``env_file`` (lines to a dict) -> ``parse`` (by the table of
``variables``, each with one of the ``parsers``) -> ``cross_checks`` (rules that span several values) -> ``values``.
"""
