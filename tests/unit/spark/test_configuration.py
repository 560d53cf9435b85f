from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from appliance.settings.secret import Secret
from appliance.settings.values import EngineSettings
from appliance.spark.configuration import (
    FIRST_COMPILER,
    Application,
    authentication,
    configuration,
    properties_text,
    submitted_configuration,
)
from tests.support.engine import ENGINE

HOST = "10.0.0.5"
NOTHING: Mapping[str, str] = {}
CLUSTER = replace(ENGINE, spark_master="spark://10.0.0.9:7077", tasks=6, spark_secret=Secret("of the cluster"))


def configured(engine: EngineSettings = CLUSTER, *, transforms: bool = False) -> dict[str, str]:
    application = Application(engine, "link", Path("/etc/setenv.sh"), transforms=transforms)
    return configuration(application, Path("/tempdir"), HOST)


def submitted(
    settings: Mapping[str, str], passed: Mapping[str, str] = NOTHING, *, transforms: bool = False
) -> dict[str, str]:
    """What is added to the settings that spark-submit was given."""
    return submitted_configuration(Application(CLUSTER, "link", Path("/etc/setenv.sh"), passed, transforms), settings)


def test_a_cluster_gives_each_task_a_core_and_no_more() -> None:
    entries = configured()
    assert entries["spark.master"] == CLUSTER.spark_master
    assert entries["spark.cores.max"] == str(CLUSTER.task_count) == "6"
    assert entries["spark.driver.host"] == entries["spark.driver.bindAddress"] == HOST


def test_in_a_cluster_sql_in_flight_has_a_second_core_for_each_task_and_executors_whose_java_fits_it() -> None:
    entries = configured(transforms=True)
    assert entries["spark.cores.max"] == "12"
    executor = entries["spark.executor.extraJavaOptions"].split()
    assert FIRST_COMPILER not in executor
    assert [option for option in executor if "MaxDirectMemorySize" in option] == [
        "-XX:MaxDirectMemorySize=64m",
        "-XX:MaxDirectMemorySize=352m",
    ]
    entries = submitted({}, transforms=True)
    assert (entries["spark.cores.max"], entries["spark.python.worker.reuse"]) == ("12", "true")


@pytest.mark.parametrize("master", ["local[*]", "local[2]", "spark://10.0.0.9:7077", "k8s://https://10.0.0.9:6443"])
def test_in_every_mode_spark_hears_nobody_without_its_secret_and_encrypts_with_integrity(master: str) -> None:
    entries = configured(replace(CLUSTER, spark_master=master))
    assert entries["spark.authenticate"] == entries["spark.network.crypto.enabled"] == "true"
    assert entries["spark.network.crypto.cipher"] == "AES/GCM/NoPadding"
    assert entries["spark.network.crypto.authEngineVersion"] == "2"
    assert entries["spark.network.crypto.saslFallback"] == "false"


def test_only_a_standalone_cluster_is_told_a_secret_elsewhere_spark_draws_one_for_each_run() -> None:
    assert authentication(CLUSTER)["spark.authenticate.secret"] == "of the cluster"
    for master in ("local[*]", "k8s://https://10.0.0.9:6443"):
        assert "spark.authenticate.secret" not in authentication(replace(CLUSTER, spark_master=master))


def test_the_cluster_dials_the_ports_behind_the_control_connections() -> None:
    entries = configured(replace(CLUSTER, spark_driver_port=15070))
    assert (entries["spark.driver.port"], entries["spark.driver.blockManager.port"]) == ("15071", "15072")
    assert "spark.driver.port" not in configured()


def test_the_file_of_properties_keeps_what_java_would_read_as_an_escape() -> None:
    assert properties_text({"a": r"one \two", "b": ""}) == "a=one \\\\two\nb=\n"


def test_case_50_a_python_process_runs_one_task_and_waits_for_no_other() -> None:
    # Before, a process that waited for its next task logged a traceback when Java ended.
    entries = configured(ENGINE)
    assert entries["spark.python.worker.reuse"] == "false"


def test_where_spark_submit_has_started_java_its_settings_count_and_ours_fill_the_gaps() -> None:
    given = {"spark.cores.max": "4", "spark.ui.enabled": "true"}
    entries = submitted(given, {"spark.executor.cores": "2"})
    assert not entries.keys() & given.keys()
    assert entries["spark.executorEnv.APPLIANCE_ENV_FILE"] == "/etc/setenv.sh"
    assert (entries["spark.app.name"], entries["spark.executor.cores"]) == ("link", "2")
    assert not [name for name in entries if "secret" in name]


def test_where_spark_submit_has_started_java_nothing_undoes_what_the_tasks_rest_on() -> None:
    asked = dict.fromkeys(("spark.speculation", "spark.dynamicAllocation.enabled", "spark.python.worker.reuse"), "true")
    entries = submitted(asked)
    assert {entries[name] for name in asked} == {"false"}


def test_without_being_asked_spark_has_neither_a_page_nor_an_event_log() -> None:
    for entries in (
        configured(ENGINE),
        submitted({}),
    ):
        assert entries["spark.ui.enabled"] == "false"
        assert "spark.eventLog.enabled" not in entries


def test_a_folder_on_this_host_becomes_a_url_and_a_url_stays(tmp_path: Path) -> None:
    for folder, address in (
        (f"{tmp_path}/a b", f"{tmp_path.as_uri()}/a%20b"),
        ("s3a://logs/spark", "s3a://logs/spark"),
    ):
        engine = replace(ENGINE, monitoring=replace(ENGINE.monitoring, event_log=folder))
        assert configured(engine)["spark.eventLog.dir"] == address


def test_sql_in_flight_has_slots_and_processes_of_its_own_and_both_compilers() -> None:
    engine = replace(ENGINE, tasks=3)
    plain = configured(engine)
    sql = configured(engine, transforms=True)
    assert (plain["spark.master"], sql["spark.master"]) == ("local[4,4]", "local[7,4]")
    reuse = "spark.python.worker.reuse"
    assert (plain[reuse], sql[reuse], sql["spark.python.udf.pipelined.enabled"]) == ("false", "true", "false")
    assert FIRST_COMPILER in plain["spark.driver.extraJavaOptions"]
    assert FIRST_COMPILER not in sql["spark.driver.extraJavaOptions"]


def test_no_record_ends_an_executor_or_makes_xml_fetch_anything_in_any_mode() -> None:
    forbidden = ["-Djavax.xml.accessExternalDTD=", "-Djavax.xml.accessExternalSchema="]
    local = configured(ENGINE, transforms=True)
    cluster = configured(transforms=True)
    given = {"spark.executor.extraJavaOptions": "-Dtheirs=1", "spark.executor.killOnFatalError.depth": "5"}
    theirs = submitted(given, transforms=True)
    for entries in (local, cluster, theirs):
        assert entries["spark.executor.killOnFatalError.depth"] == "0"
    options = [local["spark.driver.extraJavaOptions"], cluster["spark.executor.extraJavaOptions"]]
    for each in (*options, theirs["spark.executor.extraJavaOptions"]):
        assert set(forbidden) <= set(each.split())
    assert "-Dtheirs=1" in theirs["spark.executor.extraJavaOptions"].split()
