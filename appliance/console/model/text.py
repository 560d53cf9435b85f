"""Numbers, times and sizes as people read them; None is the word unknown."""

UNKNOWN = "unknown"
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
_SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def count(number: float | None) -> str:
    """A whole number, with commas between thousands; a small rate keeps a decimal."""
    if number is None:
        return UNKNOWN
    digits = 1 if isinstance(number, float) and 0 < number < 10 else 0
    return f"{number:,.{digits}f}"


def size(number: float | None) -> str:
    """A number of bytes, in powers of 1000."""
    if number is None:
        return UNKNOWN
    value = float(number)
    for unit in _UNITS:
        if value < 1000 or unit == _UNITS[-1]:
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"


def span(seconds: float | None) -> str:
    """A time in its two largest units: ``2 h 5 min``."""
    if seconds is None:
        return UNKNOWN
    if seconds < 10:
        return f"{seconds:.1f} s" if seconds else "0 s"
    rest = int(seconds)
    parts: list[str] = []
    for length, unit in _SPANS:
        if rest >= length or (unit == "s" and not parts):
            parts.append(f"{rest // length} {unit}")
            rest %= length
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if part != "0 s") or "0 s"


def milliseconds(number: float | None) -> str:
    """A time in milliseconds, or in larger units from 10 s on."""
    if number is None:
        return UNKNOWN
    return f"{number:.0f} ms" if number < 10_000 else span(number / 1000)
