"""The control center: a page that shows the links of a VM, from committed facts; it needs no running replicator.

- ``model``: history, events, tables and the Connect documents; no IO.
- ``watch``: collects snapshots of this link, and keeps an hour of history.
- ``tunnel``, ``diagnosis``, ``actions``: the tunnel's status, the doctor's steps and the operator's commands.
- ``links``: the control centers of the VM's other links.
- ``pages``, ``server``: the pages, and who may see and send what.
- ``command``: ``appliance console``.
- ``templates``, ``assets``: what a browser gets.
"""
