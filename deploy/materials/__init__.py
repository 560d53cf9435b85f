"""The image's bill of materials in CycloneDX: all that it is made of, with versions, hashes and licences.

- ``bill``: the bill.
- ``debian``, ``python``, ``jars``: the packages of each kind.
"""
