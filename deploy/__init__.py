"""Programs that run on the VM, not in the image: they write files from the settings, and the image's bill of materials.

- ``prepare``: the two prepare scripts.
- ``render``: the texts of the files; no IO.
- ``materials``: the bill of materials.
"""
