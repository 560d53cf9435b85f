"""The image's bill of materials in CycloneDX: all that it is made of, with versions, hashes and licences.

It runs once, while the image is built, in the environment of requirements-materials.lock; no image has this room.

Law: the bill is read from what is installed, never from what was asked for. Only hashes come from the lock, since an
installed package does not keep its own.
"""
