import hashlib
import re
from pathlib import Path

import appliance.console

FOLDER = Path(appliance.console.__file__).parent
DIGESTS = {
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}


def test_the_chart_library_is_its_package_unchanged() -> None:
    found = {name: hashlib.sha256((FOLDER / "assets/uplot" / name).read_bytes()).hexdigest() for name in DIGESTS}
    assert found == DIGESTS


def test_no_page_names_another_site() -> None:
    for path in [*FOLDER.glob("templates/*.html"), *FOLDER.glob("assets/*.*")]:
        addresses = re.findall(r"(?:https?:)?//[\w.-]+\.\w+", path.read_text())
        assert set(addresses) <= {"http://www.w3.org"}, path


def test_no_page_has_a_script_or_a_style_within_it() -> None:
    for path in FOLDER.glob("templates/*.html"):
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=", path.read_text()), path


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, "contrast ratio"."""

    def luminance(color: str) -> float:
        parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_every_pair_of_text_and_ground_has_the_contrast_of_wcag_aa_in_light_and_in_dark() -> None:
    themes = re.findall(r"--ground: .*?}", (FOLDER / "assets/console.css").read_text(), re.DOTALL)
    assert len(themes) == 2
    for theme in themes:
        color = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", theme))
        kinds = ("good", "busy", "bad", "warn", "off")
        pairs = [(color[kind], color[f"{kind}-ground"]) for kind in kinds]
        pairs += [(color[text], color[ground]) for text in ("text", "quiet", "accent") for ground in ("ground", "card")]
        pairs += [(color["text"], color["code"]), (color["on-accent"], color["accent"])]
        pairs += [(color["quiet"], color[f"{kind}-ground"]) for kind in kinds]
        assert [(pair, round(contrast(*pair), 2)) for pair in pairs if contrast(*pair) < 4.5] == []
