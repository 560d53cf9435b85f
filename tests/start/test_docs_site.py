"""``bin/docs build`` makes the site of docs/, and fails on a link that leads nowhere."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
NEEDED = ("bin/docs", "bin/environment.py", "zensical.toml", "requirements-docs.lock")
FETCHED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"?https?://[^\s>]*|<link\b[^>]*href=\"?https?://[^\s>]*"
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    for name in NEEDED:
        shutil.copy(CHECKOUT / name, tmp_path / name)
    shutil.copytree(CHECKOUT / "docs", tmp_path / "docs")
    return tmp_path


def build(checkout: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([checkout / "bin" / "docs", "build"], capture_output=True, text=True, check=False)


def test_the_site_has_every_page_a_search_and_nothing_from_another_host(checkout: Path) -> None:
    built = build(checkout)
    assert built.returncode == 0, built.stdout + built.stderr
    site = checkout / "site"
    pages = {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")} - {Path("404")}
    sources = {path.relative_to(checkout / "docs") for path in (checkout / "docs").rglob("*.md")}
    assert pages == {path.with_name("index") if path.name == "README.md" else path.with_suffix("") for path in sources}
    assert [found for path in site.rglob("*.html") for found in FETCHED.findall(path.read_text())] == []
    assert [path for path in site.rglob("*.css") if re.search(r"url\(\"?https?://", path.read_text())] == []
    assert "why/exactly-once.html" in (site / "search.json").read_text()


@pytest.mark.parametrize("link", ["nowhere.md", "operations.md#nowhere"])
def test_a_link_that_leads_nowhere_fails_the_build(checkout: Path, link: str) -> None:
    with (checkout / "docs" / "run" / "names.md").open("a") as page:
        page.write(f"\nSee [there]({link}).\n")
    built = build(checkout)
    assert built.returncode != 0
    assert link in built.stdout + built.stderr or "not exist" in built.stdout + built.stderr
