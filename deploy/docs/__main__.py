"""``python -m deploy.docs``: write the pages of docs/ that follow from the code."""

from pathlib import Path

from deploy.docs import alerts

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {"night/alerts.md": alerts.page}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())
