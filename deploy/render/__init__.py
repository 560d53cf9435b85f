"""The settings become the files of a VM, as texts; no IO but the templates.

- ``compose``, ``container``, ``mounts``, ``limits``: docker-compose.yml.
- ``firewall``: firewall rules.
- ``differences``, ``example``: changes shown without secrets, and the file in Git.
- ``template``, ``vm``: the templates, and the VM with its ports.
"""
