"""The link's statement, as values; pure.

- ``statement``: its text, its records' columns, and the place of an error in it.
- ``dry_run``: records before and after, side by side.
- ``refusals``: what is wrong with a part of a statement, by its name in Catalyst, and the functions that it may use.
"""
