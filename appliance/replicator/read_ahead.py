"""How far reading runs ahead of writing: what the buffers of a process may hold together, and one alone of it."""

from dataclasses import dataclass

from appliance.replicator.buffer import Buffer

_BYTES = 32 * 1024 * 1024
LEAST = 64 * 1024
"""It is not worth a Fetch to ask for fewer bytes of a partition than this."""


@dataclass(slots=True)
class ReadAhead:
    """``bytes`` is what all buffers hold now."""

    bytes: int = 0

    def room(self, buffer: Buffer) -> int:
        """How many bytes may be fetched into a buffer; 0 when it is full.

        One buffer may hold half of what is left of the whole (the dynamic threshold of shared-memory switches,
        Choudhury and Hahne 1998): a partition alone gets much, many get their shares, and what one lane cannot get rid
        of leaves room for the others. An empty buffer may always be filled.
        """
        room = (_BYTES - self.bytes) // 2 - buffer.bytes
        if room < LEAST:
            return 0 if buffer.portions else LEAST
        return room
