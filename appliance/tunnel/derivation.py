"""Keys from the shared secret: the one derivation that both VMs do without copying a file.

    bytes = scrypt(secret, salt=label, n=2**15, r=8, p=1)          (RFC 7914)

Memory-hard (32 MiB, a tenth of a second for each guess), because whoever can reach the tunnel's port can try secrets
against what the server shows.
"""

from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from appliance.settings.secret import Secret


def derive(secret: Secret, label: str, length: int) -> bytes:
    """``length`` bytes, the same on both VMs; another label gives bytes that tell nothing of these."""
    return Scrypt(salt=label.encode(), length=length, n=2**15, r=8, p=1).derive(secret.reveal().encode())
