"""The requirements of the suite on its machine."""

from tests.support import requirements

_PACKAGES = {
    "promtool": "prometheus",
    "prometheus": "prometheus",
    "chromium": "chromium",
    "chromedriver": "chromium-driver",
}
"""The Debian package of each program."""


def missing() -> str | None:
    """The missing requirement in one line; None if the suite can run."""
    return requirements.missing("console", None, _PACKAGES)
