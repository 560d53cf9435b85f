"""The file with the SQL, and its salt."""

from pathlib import Path

import pytest

from appliance.errors import SettingsError
from appliance.settings.secret import new_secret
from appliance.sql.model.statement import Statement
from tests.support.settings import faults, parsed


def test_without_a_file_records_are_copied_as_they_are() -> None:
    assert Statement.of(parsed().transform) is None


def test_the_text_is_read_at_every_start(tmp_path: Path) -> None:
    file = tmp_path / "mask.sql"
    file.write_bytes("\ufeffSELECT key\r\nFROM records".encode())
    settings = parsed(REPLICA_TRANSFORM_SQL_FILE=str(file))
    statement = Statement.of(settings.transform)
    assert statement == Statement("SELECT key\r\nFROM records", f"REPLICA_TRANSFORM_SQL_FILE={file}")
    file.unlink()
    with pytest.raises(SettingsError, match="No such file"):
        Statement.of(settings.transform)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "expected a SELECT in it, and it is empty"),
        (b" \n", "it is empty"),
        (b"SELECT '\xff'", "expected UTF-8 text, byte 8 is none"),
        (b"-" * 70_000, "expected a file of at most 65536 bytes"),
    ],
)
def test_a_file_that_holds_no_sql_is_named(tmp_path: Path, content: bytes, expected: str) -> None:
    file = tmp_path / "mask.sql"
    file.write_bytes(content)
    for path, cause in {file: expected, tmp_path / "absent.sql": "No such file", tmp_path: "Is a directory"}.items():
        (fault,) = faults(REPLICA_TRANSFORM_SQL_FILE=str(path))
        assert fault.startswith(f"REPLICA_TRANSFORM_SQL_FILE={path}: ")
        assert cause in fault


def test_a_salt_is_a_secret_and_hard_to_guess(tmp_path: Path) -> None:
    file = tmp_path / "mask.sql"
    file.write_text("SELECT sha2(salt, 256) AS key FROM records")
    salt = new_secret("REPLICA_TRANSFORM_SALT")
    settings = parsed(REPLICA_TRANSFORM_SQL_FILE=str(file), REPLICA_TRANSFORM_SALT=salt)
    assert settings.transform.salt.reveal() == salt
    assert salt not in repr(settings)
    (weak,) = faults(REPLICA_TRANSFORM_SQL_FILE=str(file), REPLICA_TRANSFORM_SALT="pepper")
    assert weak.startswith("REPLICA_TRANSFORM_SALT: too easy to guess")
