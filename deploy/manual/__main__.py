"""``python -m deploy.manual``: writes ``appliance/help/``; a test compares it with the commands."""

from collections.abc import Mapping
from pathlib import Path

from appliance.cli import help_file
from appliance.commands.completion import SHELLS
from deploy.manual.completion import PROGRAMS, bash, fish, zsh
from deploy.manual.man import man
from deploy.manual.pages import pages

FOLDER = help_file().parent
_OTHER = {"bash": '"${BASH_SOURCE[0]%/*}/appliance.bash"', "fish": "(status dirname)/appliance.fish"}
"""How the completion of the second program, which a shell looks for by its name, finds that of the first."""


def texts() -> Mapping[Path, str]:
    """All files with their texts."""
    commands = pages()
    helps = {help_file(*page.words): page.help for page in commands}
    shells = {"bash": bash, "zsh": zsh, "fish": fish}
    completions = {FOLDER / SHELLS[name]: shell(commands) for name, shell in shells.items()}
    other = {FOLDER / f"{PROGRAMS[1]}.{shell}": f"source {there}\n" for shell, there in _OTHER.items()}
    return {**helps, **completions, **other, FOLDER / "appliance.1": man(commands)}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    written = texts()
    for old in set(FOLDER.iterdir()) - written.keys():
        old.unlink()
    for path, text in written.items():
        path.write_text(text)
