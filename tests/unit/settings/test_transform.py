"""The file with the SQL, and its salt."""

from pathlib import Path

import pytest

from appliance.errors import SettingsError
from appliance.settings.parse import parse
from appliance.settings.role import Role
from appliance.settings.secret import new_secret
from appliance.settings.values import Settings
from appliance.sql.model.statement import Statement
from tests.support.settings import REQUIRED


def read(**variables: str) -> Settings:
    return parse(REQUIRED | variables, Role.REPLICATOR)


def faults(**variables: str) -> str:
    with pytest.raises(SettingsError) as error:
        read(**variables)
    return str(error.value)


def test_without_a_file_records_are_copied_as_they_are() -> None:
    assert Statement.of(read().transform) is None


def test_the_text_is_read_at_every_start(tmp_path: Path) -> None:
    file = tmp_path / "mask.sql"
    file.write_bytes("\ufeffSELECT key\r\nFROM records".encode())
    settings = read(REPLICA_TRANSFORM_SQL_FILE=str(file))
    statement = Statement.of(settings.transform)
    assert statement == Statement("SELECT key\r\nFROM records", f"REPLICA_TRANSFORM_SQL_FILE={file}")
    file.unlink()
    with pytest.raises(SettingsError, match="No such file"):
        Statement.of(settings.transform)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "expected a SELECT in it, and it is empty"),
        (b" \n", "it is empty"),
        (b"SELECT '\xff'", "expected UTF-8 text, byte 8 is none"),
        (b"-" * 70_000, "expected a file of at most 65536 bytes"),
    ],
)
def test_a_file_that_holds_no_sql_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "mask.sql"
    file.write_bytes(content)
    assert said in faults(REPLICA_TRANSFORM_SQL_FILE=str(file))
    assert "No such file" in faults(REPLICA_TRANSFORM_SQL_FILE=str(tmp_path / "absent.sql"))
    assert "Is a directory" in faults(REPLICA_TRANSFORM_SQL_FILE=str(tmp_path))


def test_a_salt_is_a_secret_and_hard_to_guess(tmp_path: Path) -> None:
    file = tmp_path / "mask.sql"
    file.write_text("SELECT sha2(salt, 256) AS key FROM records")
    salt = new_secret("REPLICA_TRANSFORM_SALT")
    settings = read(REPLICA_TRANSFORM_SQL_FILE=str(file), REPLICA_TRANSFORM_SALT=salt)
    assert settings.transform.salt.reveal() == salt
    assert salt not in repr(settings)
    weak = faults(REPLICA_TRANSFORM_SQL_FILE=str(file), REPLICA_TRANSFORM_SALT="pepper")
    assert "REPLICA_TRANSFORM_SALT: too easy to guess" in weak
