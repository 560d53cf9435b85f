"""Regular expressions and lists of names, from Java's grammar and Kafka's lists to a single expression of ours."""

import re
import warnings

NOTHING = "(?!)"
"""An expression that matches no name. An empty variable would mean its default instead."""


def alternation(value: str) -> str:
    """A comma separated list of regular expressions as one.

    MirrorMaker 2 splits at every comma, also in brackets, and joins the parts by ``|``; so does this.

    Raises:
        ValueError: Python would not read it as Java does.
    """
    text = value.strip()
    return _same_in_python("|".join(re.split(r"\s*,\s*", text))) if text else NOTHING


def expression(value: str) -> str:
    """One regular expression, which may hold commas.

    Raises:
        ValueError: Python would not read it as Java does.
    """
    return _same_in_python(value.strip())


def names(value: str) -> str:
    """A comma separated list of names as an expression; empty for none."""
    listed = (name.strip() for name in value.split(","))
    return "|".join(re.escape(name) for name in listed if name)


def _same_in_python(text: str) -> str:
    try:
        with warnings.catch_warnings():
            # Python warns of sets within sets, which Java has and Python does not.
            warnings.simplefilter("error", FutureWarning)
            re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"Python does not read this expression: {error}") from error
    except FutureWarning as error:
        raise ValueError(f"Python reads this expression in another way than Java: {error}") from error
    return text
