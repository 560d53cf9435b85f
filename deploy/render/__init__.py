"""The texts of a VM's files, made from the settings. The only IO is reading the templates.

- ``compose``, ``container``, ``mounts``, ``limits``: docker-compose.yml.
- ``firewall``: firewall rules.
- ``example``: the file in Git.
- ``template``, ``vm``: the templates, and the VM with its ports.
"""
