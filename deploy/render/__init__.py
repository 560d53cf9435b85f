"""The texts of a VM's files, made from the settings. The only IO is reading the templates.

- ``compose``, ``container``, ``mounts``, ``limits``: prepared/docker-compose.yml.
- ``firewall``: firewall rules.
- ``template``, ``vm``: the templates, and the VM with its ports.
"""
