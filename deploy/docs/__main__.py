"""``python -m deploy.docs``: write the pages of docs/ that follow from the code."""

from pathlib import Path

from deploy.docs import alerts, commands, figures, metrics, variables

DOCS = Path(__file__).parents[2] / "docs"


def _figures() -> str:
    return figures.picture((DOCS / "why/performance.md").read_text())


PAGES = {
    "night/alerts.md": alerts.page,
    "reference/commands.md": commands.page,
    "reference/metrics.md": metrics.page,
    "reference/variables.md": variables.page,
    "why/performance.svg": _figures,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())
