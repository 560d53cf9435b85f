"""``python -m deploy.systemd``: writes the units; a test compares them with their table."""

from pathlib import Path

from deploy.systemd.units import files

FOLDER = Path(__file__).parent

if __name__ == "__main__":
    for name, text in files().items():
        (FOLDER / name).write_text(text)
