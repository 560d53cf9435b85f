"""The texts of ``appliance/help/``, of the table of the commands and the options of each.

- ``pages``: the table: a page for each command, with its options.
- ``examples``: the examples of the help.
- ``man``: the page of ``man appliance``.
- ``completion``: the completions of bash, zsh and fish.
"""
