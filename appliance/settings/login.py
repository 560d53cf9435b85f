"""Where to log in as whom, as SSH writes it: ``user@host:port``."""

import re
from dataclasses import dataclass

from appliance.settings.target import Target

_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")


def user_name(value: str) -> str:
    """A user name that needs no quoting anywhere.

    Raises:
        ValueError: with what is expected.
    """
    if not _USER.fullmatch(value):
        raise ValueError("expected a user name: at most 64 of the characters a-z A-Z 0-9 . _ -")
    return value


@dataclass(frozen=True, slots=True)
class Login:
    """A user of a server."""

    user: str
    server: Target

    @classmethod
    def parse(cls, text: str) -> "Login":
        """``user@host:port`` to a login.

        Raises:
            ValueError: with what is expected.
        """
        user, separator, server = text.partition("@")
        if not separator:
            raise ValueError("expected user@host:port")
        try:
            return cls(user_name(user), Target.parse(server))
        except ValueError as error:
            raise ValueError("expected user@host:port") from error

    def __str__(self) -> str:
        return f"{self.user}@{self.server}"
