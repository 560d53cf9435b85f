"""The link's key: derived once, slowly, from SHARED_SECRET on each VM, without copying a file.

    link key = scrypt(SHARED_SECRET, salt, n=2**17, r=8, p=1), 32 bytes                     (RFC 7914)
    salt     = "replicator-link" | for each of the two cluster ids: length u16 | id
    subkey   = HKDF-Expand(link key, purpose), with SHA-256                                 (RFC 5869, section 2.3)

It takes 128 MiB and about half a second, once for each process. The ids' lengths are part of the salt: without them
``a-b`` with ``c`` and ``a`` with ``b-c`` would have the same key.
"""

import functools

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from appliance.settings.secret import Secret

_SIZE = 32


@functools.lru_cache(maxsize=4)
def link_key(secret: Secret, source_id: str, destination_id: str) -> bytes:
    """The key of the link between two clusters; the same on both VMs."""
    ids = (each.encode() for each in (source_id, destination_id))
    salt = b"replicator-link" + b"".join(len(each).to_bytes(2, "big") + each for each in ids)
    return Scrypt(salt=salt, length=_SIZE, n=2**17, r=8, p=1).derive(secret.reveal().encode())


def subkey(key: bytes, purpose: str, size: int = _SIZE) -> bytes:
    """``size`` bytes for one purpose, independent of ``key`` and of other purposes' bytes."""
    return HKDFExpand(algorithm=SHA256(), length=size, info=purpose.encode()).derive(key)
