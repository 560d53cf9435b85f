"""Compose on this VM: a program of its own, or a plugin of Docker."""

import shutil
import subprocess


def compose_command() -> str:
    """The command of Compose on this VM."""
    if shutil.which("docker-compose") is None and shutil.which("docker") and has_compose_plugin():
        return "docker compose"
    return "docker-compose"


def has_compose_plugin() -> bool:
    """True if ``docker compose`` works."""
    try:
        answer = subprocess.run(["docker", "compose", "version"], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0
