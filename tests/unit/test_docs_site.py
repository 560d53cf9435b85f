"""The site of docs/ has every page, and each link leads to a heading that exists, on a Git host as on the site."""

import re
import tomllib
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
DOCUMENTS = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *PAGES]
LINK = re.compile(r"\]\(([^)\s#]*)#([^)\s]+)\)")


def pages_of(nav: object) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict | list):
        for each in nav.values() if isinstance(nav, dict) else nav:
            yield from pages_of(each)


def headings(path: Path) -> list[str]:
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ +(.*?) *$", text, re.MULTILINE)
    return [re.sub(r"\[(.*?)\]\(.*?\)", r"\1", title).replace("`", "") for title in titles]


def on_a_git_host(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def on_the_site(title: str) -> str:
    """As Python-Markdown's toc makes it."""
    ascii_only = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())


def test_each_page_is_once_in_the_navigation() -> None:
    listed = list(pages_of(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]))
    assert sorted(listed) == [str(path.relative_to(DOCS)) for path in PAGES]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_link_to_a_heading_leads_there_on_a_git_host_and_on_the_site(path: Path) -> None:
    for target, anchor in LINK.findall(path.read_text()):
        if "://" in target:
            continue
        page = (path.parent / target).resolve() if target else path
        assert anchor in {on_a_git_host(title) for title in headings(page)}, f"{target}#{anchor}"
        assert anchor in {on_the_site(title) for title in headings(page)}, f"{target}#{anchor}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_is_plain_markdown_with_one_title_and_links_only_within_docs(path: Path) -> None:
    text = path.read_text()
    assert not re.findall(
        r"^(?:!!!|\?\?\?|===|:::|\{%)|\{\{", re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL), re.M
    )
    assert text.startswith("# ")
    linked = [target for target in re.findall(r"\]\(([^)\s#]+)", text) if "://" not in target]
    outside = [target for target in linked if not (path.parent / target).resolve().is_relative_to(DOCS)]
    assert outside == []
