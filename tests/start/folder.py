"""A link's folder on a VM: a copy of the checkout, as Git would clone it, in which the prepare scripts run."""

import os
import pty
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from appliance.settings.variables import NAMES, TABLE
from tests.support.settings import REQUIRED

CHECKOUT = Path(__file__).parents[2]
DIRECTORIES = ("appliance", "deploy", "bin", "templates")
CLONED = (*DIRECTORIES, ".gitignore", "docker-compose.yml", "setenv.sh.template", "requirements-prepare.lock")
SOURCE, DESTINATION = "prepare_src_config.sh", "prepare_dest_config.sh"
ADDRESS = "127.78.0.1"
"""The tunnel's address; no outgoing connection of another test has a port of it."""

SECRETS = [REQUIRED[variable.name] for variable in TABLE if variable.confidential and variable.required]


class Link:
    """A link's folder, and the output of the scripts in it; or an order's, with other ``required`` settings."""

    def __init__(
        self, folder: Path, cache: Path, settings: Mapping[str, str], required: Mapping[str, str] = REQUIRED
    ) -> None:
        self.folder = folder
        self.cache = cache
        self._settings = {**required, **settings}
        for name in CLONED:
            if (CHECKOUT / name).is_dir():
                shutil.copytree(CHECKOUT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(CHECKOUT / name, folder / name)
        self.set()

    def set(self, **changes: str) -> None:
        """Write setenv.sh with these changed settings, which also apply later."""
        self._settings |= changes
        text = "".join(f"export {name}='{value}'\n" for name, value in self._settings.items())
        (self.folder / "setenv.sh").write_text(text)
        (self.folder / "setenv.sh").chmod(0o600)

    def run(self, script: str, *arguments: str, **environment: str) -> tuple[int, str, str]:
        """Run the script; return its exit code, stdout and stderr."""
        process = self.start(script, *arguments, **environment)
        out, err = process.communicate(timeout=180)
        assert not [secret for secret in SECRETS if secret in out + err]
        return process.returncode, out, err

    def at_a_terminal(self, script: str, answer: str) -> int:
        """Run the script at a terminal, at which a user types the answer to its question; return its exit code."""
        ours, its = pty.openpty()
        process = self.start(script, stdin=its)
        os.close(its)
        assert process.stderr
        assert process.stdout
        while process.stderr.read(1) != "?":
            assert process.poll() is None, "it has not asked"
        os.write(ours, f"{answer}\n".encode())
        process.stdout.read()
        process.stderr.read()
        os.close(ours)
        return process.wait(timeout=60)

    def start(
        self, script: str, *arguments: str, stdin: int = subprocess.DEVNULL, **more: str
    ) -> subprocess.Popen[str]:
        """The script's process, with ``more`` in its environment."""
        environment = {name: value for name, value in os.environ.items() if name not in NAMES} | more
        return subprocess.Popen(
            [str(self.folder / "bin" / script), *arguments],
            env=environment | {"XDG_CACHE_HOME": str(self.cache)},
            cwd="/",
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def git(self, *arguments: str) -> str:
        """Run Git in the folder as somebody without settings; return its output."""
        own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
        who = ["-c", "user.name=ann", "-c", "user.email=ann@example.com"]
        command = ["git", "-C", str(self.folder), *who, *arguments]
        return subprocess.run(command, env=own, stdout=subprocess.PIPE, check=True, text=True).stdout

    def commit(self, branch: str) -> None:
        """Commit all files that are not ignored, in a branch of this name; the first time, make the repository."""
        self.git("init", "--quiet", "--initial-branch", branch)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", branch)

    def files(self) -> dict[str, str]:
        """The files of the folder besides the clone's own directories."""
        paths = [path for path in self.folder.rglob("*") if path.is_file()]
        return {
            str(path.relative_to(self.folder)): path.read_text()
            for path in paths
            if path.relative_to(self.folder).parts[0] not in DIRECTORIES
        }
