"""Builds the image, so that it is small and the same each time; the ``Dockerfile`` calls some of this.

- ``slim``: removes what the image has no use for.
- ``entrypoint``: writes the image's entrypoint.
- ``debian.sh``, ``trim.sh``: install Debian's packages, and remove what nothing needs.
- ``normal``, ``build``: make two builds the same, bit for bit.
- ``lock``: renews the lock of Debian's packages.
- ``provenance``: the statement of how an image was made.
- ``bundle``: the file that carries an image to a VM without internet.
"""
