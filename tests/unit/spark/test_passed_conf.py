"""Settings of ``--conf``: passed on, or refused with the reason."""

from pathlib import Path

import pytest

from appliance.errors import SettingsError
from appliance.settings.parse import parse
from appliance.settings.role import Role
from appliance.spark.configuration import Application, configuration
from appliance.spark.passed_conf import merged, passed_conf, secrets_of
from tests.support.engine import ENGINE
from tests.support.settings import REQUIRED


def refused(option: str, *secrets: str) -> str:
    with pytest.raises(SettingsError) as error:
        passed_conf([option], secrets)
    (fault,) = error.value.faults
    assert fault.startswith("--conf ")
    return fault.removeprefix("--conf ")


def test_settings_are_passed_on_and_the_last_of_a_name_counts() -> None:
    options = ["spark.executor.memory=1g", "spark.executor.memory = 2g", "spark.hadoop.fs.s3a.path.style.access=true"]
    expected = {"spark.executor.memory": "2g", "spark.hadoop.fs.s3a.path.style.access": "true"}
    assert passed_conf(options) == expected


@pytest.mark.parametrize(
    "name",
    ["spark.hadoop.fs.s3a.secret.key", "spark.ssl.keyPassword", "spark.executorEnv.MY_API_KEY", "spark.my.Token"],
)
def test_a_secret_is_refused_and_not_shown(name: str) -> None:
    fault = refused(f"{name}=hush")
    assert fault.startswith(f"{name}: a secret is never passed on")
    assert "hush" not in fault


def test_the_name_of_a_class_that_finds_secrets_is_none() -> None:
    option = "spark.hadoop.fs.s3a.aws.credentials.provider=org.example.FromTheMachine"
    assert passed_conf([option]) == dict([option.split("=")])


def test_a_value_that_holds_a_secret_of_ours_is_refused() -> None:
    secrets = set(secrets_of(parse(REQUIRED, Role.REPLICATOR)))
    assert secrets
    for secret in secrets:
        assert refused(f"spark.app.note={secret}", *secrets) == "spark.app.note: its value holds a secret of the link"


@pytest.mark.parametrize(
    ("option", "variable"),
    [
        ("spark.master=local[8]", "SPARK_MASTER"),
        ("spark.cores.max=8", "TASKS"),
        ("spark.ui.port=1", "SPARK_UI_PORT"),
        ("spark.driver.memory=8g", "SPARK_DRIVER_MEMORY"),
        ("spark.dynamicAllocation.enabled=true", "TASKS"),
        ("spark.executorEnv.LOG_LEVEL=debug", "setenv.sh"),
        ("spark.jars.packages=a:b:1", "everybody"),
        ("spark.authenticate=false", "secret"),
        ("other=1", "spark."),
        ("spark.executor.memory", "KEY=VALUE"),
    ],
)
def test_what_the_replicator_rests_on_is_refused_with_the_reason(option: str, variable: str) -> None:
    assert variable in refused(option)


def test_case_475_a_value_that_no_equals_sign_precedes_is_not_shown() -> None:
    # Before, it was taken for a part of the name, and stood in the error and in the log.
    for option in ("spark.hadoop.fs.s3a.secret.key:hush", "spark.hadoop.fs.s3a.secret.key hush"):
        assert refused(option) == "spark.hadoop.fs.s3a.secret.key...: expected KEY=VALUE"
    assert refused("c2VjcmV0IG9mIG91cnM=", "c2VjcmV0IG9mIG91cnM=") == (
        "...: expected the name of a setting of Spark, which begins with spark."
    )


def test_case_476_the_answers_of_the_links_sql_and_its_slots_are_not_changed() -> None:
    # Before, a copy that was made by other settings differed in a verification, and SQL waited for ever for a slot.
    for name in ("spark.sql.legacy.timeParserPolicy", "spark.sql.adaptive.enabled"):
        assert refused(f"{name}=other").startswith(f"{name}: the link's SQL gives the same answers")
    assert refused("spark.task.cpus=2").startswith("spark.task.cpus: TASKS says")


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(SettingsError) as error:
        passed_conf(["spark.files=x", "spark.port.maxRetries=1"])
    assert len(error.value.faults) == 2


def test_options_of_java_are_added_to_ours() -> None:
    ours = {"spark.driver.extraJavaOptions": "-Dours=1", "spark.executor.memory": "512m"}
    passed = {"spark.driver.extraJavaOptions": "-Dtheirs=2", "spark.executor.memory": "1g"}
    assert merged(ours, passed) == {
        "spark.driver.extraJavaOptions": "-Dours=1 -Dtheirs=2",
        "spark.executor.memory": "1g",
    }


def test_what_is_passed_on_reaches_the_configuration_of_spark() -> None:
    application = Application(ENGINE, "link", Path("/etc/setenv.sh"), {"spark.executor.memory": "3g"})
    entries = configuration(application, Path("/tempdir"), "127.0.0.1")
    assert entries["spark.executor.memory"] == "3g"
