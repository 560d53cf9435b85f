"""The command line of an executor in a pod, from what Spark sets there."""

import pytest

from appliance.errors import SettingsError
from appliance.spark.pod import executor_command

SET_BY_SPARK = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.244.0.7:7079",
    "SPARK_EXECUTOR_ID": "1",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_APPLICATION_ID": "spark-application-1",
    "SPARK_EXECUTOR_POD_IP": "10.244.0.8",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "link-exec-1",
    "SPARK_EXECUTOR_MEMORY": "512m",
}


def test_options_of_java_are_in_the_order_of_their_numbers_and_a_value_with_blanks_stays_one() -> None:
    options = {f"SPARK_JAVA_OPT_{number}": f"-Dnumber={number} of 12" for number in range(12)}
    command = executor_command({**SET_BY_SPARK, **dict(sorted(options.items()))})
    assert command[1:13] == list(options.values())


def test_each_argument_of_the_executor_is_what_spark_has_set_and_its_heap_is_fixed() -> None:
    java, *arguments = executor_command(SET_BY_SPARK)
    assert java == "java"
    assert arguments[:2] == ["-Xms512m", "-Xmx512m"]
    given = arguments[arguments.index("--driver-url") :]
    assert dict(zip(given[::2], given[1::2], strict=True)) == {
        "--driver-url": "spark://CoarseGrainedScheduler@10.244.0.7:7079",
        "--executor-id": "1",
        "--cores": "2",
        "--app-id": "spark-application-1",
        "--hostname": "10.244.0.8",
        "--resourceProfileId": "0",
        "--podName": "link-exec-1",
    }


def test_the_java_of_java_home_is_used_where_there_is_one() -> None:
    assert executor_command({**SET_BY_SPARK, "JAVA_HOME": "/usr/lib/jvm/21"})[0] == "/usr/lib/jvm/21/bin/java"


def test_outside_of_a_pod_that_spark_has_made_each_missing_variable_is_named() -> None:
    with pytest.raises(SettingsError) as refused:
        executor_command({"SPARK_EXECUTOR_ID": "1"})
    assert len(refused.value.faults) == len(SET_BY_SPARK) - 1
    assert refused.value.faults[0].startswith("SPARK_DRIVER_URL: missing")
