"""Units of systemd for a host without containers, one for each role: an instance is a link, by its folder's name.

- ``units``: the table of the roles, and their text.
"""
