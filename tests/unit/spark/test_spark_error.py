import pytest

from appliance.spark.session import spark_error

FAILED = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent \
failure: Lost task 0.3 in stage 1.0 (TID 5) (10.0.0.7 executor 1): """
TRACE = """org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
{said}

\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:500)
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("appliance.errors.PeerError: other releases", "on 10.0.0.7: other releases"),
        ("appliance.errors.SettingsError: one fault\nanother", "on 10.0.0.7: one fault; another"),
        ("ValueError: nothing of ours", "on 10.0.0.7: ValueError: nothing of ours"),
    ],
)
def test_a_tasks_error_is_its_innermost_exception(said: str, line: str) -> None:
    assert spark_error(FAILED + TRACE.format(said=said)) == line


@pytest.mark.parametrize(
    "said",
    [
        "org.apache.spark.SparkException: \nError from python worker:\n  python3: Error while finding module "
        "specification for 'appliance.driver.daemon' "
        "(ModuleNotFoundError: No module named 'appliance')\nPYTHONPATH was:\n  /x",
        'java.io.IOException: Cannot run program "python3": error=2, No such file or directory',
    ],
)
def test_a_host_without_our_python_is_told_how_to_start_its_worker(said: str) -> None:
    line = spark_error(FAILED + said)
    assert line.startswith("on 10.0.0.7: ")
    assert line.endswith(": start its Spark worker by `appliance spark worker`")


def test_case_1054_a_host_of_a_release_with_other_modules_is_told_to_install_the_same() -> None:
    said = (
        "Error from python worker:\n  python3: Error while finding module specification for 'appliance.driver.daemon' "
        "(ModuleNotFoundError: No module named 'appliance.driver')\nPYTHONPATH was:\n  /x"
    )
    expected = "on 10.0.0.7: it has another release of the appliance: install the same on every host"
    assert spark_error(FAILED + said) == expected


def test_without_python_the_error_is_javas_first_line() -> None:
    assert (
        spark_error("An error occurred while calling None.\n: java.lang.Oops: all masters\n\tat x")
        == "java.lang.Oops: all masters"
    )


def test_there_is_always_a_line() -> None:
    assert spark_error("") == "Spark does not say why"
