"""Runs on the VM, not in the image: settings become files, and the image its bill of materials.

- ``prepare``: the two prepare scripts.
- ``render``: the texts of the files; no IO.
- ``materials``: the bill of materials.
"""
