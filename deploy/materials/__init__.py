"""The image's bill of materials in CycloneDX: its components, with versions, hashes and licences.

- ``bill``: the bill, and the Debian packages in it.
- ``python``, ``jars``: the Python packages and the Java libraries.
"""
