"""Plain texts of the code as Markdown."""

import re


def plain(text: str) -> str:
    """A text that holds no Markdown, with the pages of docs/ that it names as links from another folder."""
    escaped = text.replace("<", "&lt;").replace("*", r"\*").replace("|", r"\|")
    return linked(escaped)


def linked(text: str) -> str:
    """The text with the pages of docs/ that it names as links from another folder of docs/."""
    return re.sub(r"docs/([\w/-]+\.md)", r"[\1](../\1)", text)
