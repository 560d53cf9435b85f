"""The lines of a benchmark's progress."""

import logging

log = logging.getLogger("appliance.bench")


def progress(event: str, **fields: object) -> None:
    """Log an event with its fields."""
    log.info(event, extra={"fields": fields})
