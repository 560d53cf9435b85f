"""Values like a web shop's log: JSON with repeated names and unique ids, which lz4 compresses to a third."""

import json
import random

_SEED = 20
_WHOLE_SIZE = 450
_TYPES = ("search", "view", "cart", "order", "refund", "login", "rating", "share")
_WORDS = ("slow", "fast", "blue", "green", "large", "small", "late", "early", "broken", "new", "used", "light", "heavy")


def events(count: int, size: int) -> list[bytes]:
    """``count`` different events of ``size`` bytes each, always the same."""
    source = random.Random(_SEED)
    return [_event(source, size) for _ in range(count)]


def _event(source: random.Random, size: int) -> bytes:
    """An event, reduced to the fields of a short message if ``size`` has no room for all."""
    fields = _all(source) if size >= _WHOLE_SIZE else _few(source)
    room = size - len(json.dumps(fields, separators=(",", ":")))
    if room < 0:
        raise ValueError(f"an event needs {size - room} bytes, not {size}")
    fields["words"] = " ".join(source.choices(_WORDS, k=room))[:room]
    return json.dumps(fields, separators=(",", ":")).encode()


def _few(source: random.Random) -> dict[str, str | int]:
    return {
        "id": source.randbytes(6).hex(),
        "type": source.choice(_TYPES),
        "at": 1_790_000_000_000 + source.randrange(10**9),
        "item": source.randrange(10**6, 10**7),
        "words": "",
    }


def _all(source: random.Random) -> dict[str, str | int]:
    return {
        "id": source.randbytes(16).hex(),
        "type": source.choice(_TYPES),
        "at": 1_790_000_000_000 + source.randrange(10**9),
        "customer": source.randrange(10**8, 10**9),
        "session": source.randbytes(12).hex(),
        "item": source.randrange(10**6, 10**7),
        "price": f"{source.randrange(10**5) / 100:.2f}",
        "currency": "EUR",
        "page": f"/catalogue/{source.randrange(100, 1000)}/items/{source.randrange(10**6, 10**7)}",
        "agent": f"Mozilla/5.0 (X11; Linux x86_64; rv:1{source.randrange(10, 40)}.0) Gecko/20100101 Firefox",
        "referrer": f"https://www.example.com/campaign/{source.randrange(1000, 10_000)}",
        "words": "",
    }
