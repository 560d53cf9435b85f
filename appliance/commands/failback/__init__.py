"""``appliance failback``: what promoted copies took goes back to its source, exactly once.

- ``command``, ``failback``: the options, and the whole of it.
- ``reverse_link``, ``beginning``: the link in reverse, and where it begins.
- ``diverged``, ``positions``: uncopied records, kept elsewhere; the positions of the link afterwards.
- ``returning_groups``: the groups, synced the other way.
- ``model``: its plan and its report; no IO.
"""
