"""The picture of the rates, drawn from the table of docs/why/performance.md."""

import re
from html import escape

_ROW = re.compile(r"^\| (.+), records/s \| ([\d,]+) \| ([\d,]+) \| ([\d.]+) \|$", re.MULTILINE)
_WIDTH, _LEFT, _BAR, _STEP, _TOP = 780, 230, 360, 46, 56

_STYLE = """\
  <style>
    text { font: 14px sans-serif; fill: #222; }
    .ground { fill: #fff; } .ours { fill: #1f6f8b; } .other { fill: #b8bec8; } .title { font-weight: bold; }
    @media (prefers-color-scheme: dark) {
      text { fill: #eee; } .ground { fill: #1c1f26; } .ours { fill: #4fb3d1; } .other { fill: #6b7280; }
    }
  </style>
"""


def picture(page: str) -> str:
    """An SVG with two bars for each row in records a second."""
    rows = [(load, _number(ours), _number(other), ratio) for load, ours, other, ratio in _ROW.findall(page)]
    widest = max(ours for _, ours, _, _ in rows)
    height = _TOP + _STEP * len(rows) + 8
    bars = "".join(_bars(_TOP + _STEP * place, row, widest) for place, row in enumerate(rows))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">\n'
        "  <title>Records a second, ours beside MirrorMaker 2</title>\n"
        f'{_STYLE}  <rect class="ground" width="{_WIDTH}" height="{height}" rx="6"/>\n'
        '  <text class="title" x="16" y="30">Records a second, exactly once</text>\n'
        '  <text x="320" y="30">beside MirrorMaker 2, at least once, on the same two cores</text>\n'
        f"{bars}</svg>\n"
    )


def _bars(top: int, row: tuple[str, int, int, str], widest: int) -> str:
    load, ours, other, ratio = row
    long, short = round(_BAR * ours / widest), round(_BAR * other / widest)
    return (
        f'  <text x="{_LEFT - 12}" y="{top + 21}" text-anchor="end">{escape(load)}</text>\n'
        f'  <rect class="ours" x="{_LEFT}" y="{top}" width="{long}" height="18" rx="2"/>\n'
        f'  <text class="title" x="{_LEFT + long + 8}" y="{top + 14}">{ours:,} · {ratio} times</text>\n'
        f'  <rect class="other" x="{_LEFT}" y="{top + 20}" width="{short}" height="12" rx="2"/>\n'
        f'  <text x="{_LEFT + short + 8}" y="{top + 31}">{other:,}</text>\n'
    )


def _number(text: str) -> int:
    return int(text.replace(",", ""))
