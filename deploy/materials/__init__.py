"""The image's bill of materials in CycloneDX: its components, with versions, hashes and licences.

- ``bill``: the bill, the Debian packages and the Java libraries in it.
- ``python``: the Python packages.
"""
