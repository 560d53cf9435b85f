"""An executor of Spark in a pod of Kubernetes: Spark gives it all arguments in its environment."""

import asyncio
import itertools
import os
from collections.abc import Mapping
from pathlib import Path

from appliance.errors import SettingsError
from appliance.runtime.background import ended, unless_stopped
from appliance.runtime.child_process import killed_with_parent
from appliance.spark.configuration import LOG_FILE
from appliance.spark.spark_jvm import java_environment, spark_home
from appliance.spark.tempdir import tempdir

_ARGUMENTS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}
_HEAP = "SPARK_EXECUTOR_MEMORY"


def executor_command(environment: Mapping[str, str]) -> list[str]:
    """The command line of its Java; SettingsError outside of a pod that Spark has made."""
    if missing := [name for name in (*_ARGUMENTS.values(), _HEAP) if name not in environment]:
        raise SettingsError([f"{name}: missing: Spark sets it in the pods that it makes" for name in missing])
    numbered = (environment.get(f"SPARK_JAVA_OPT_{number}") for number in itertools.count())
    options = [option for option in itertools.takewhile(lambda option: option is not None, numbered) if option]
    java = f"{environment['JAVA_HOME']}/bin/java" if "JAVA_HOME" in environment else "java"
    heap, main = environment[_HEAP], "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
    arguments = [part for option, name in _ARGUMENTS.items() for part in (option, environment[name])]
    return [java, *options, f"-Xms{heap}", f"-Xmx{heap}", "-cp", f"{spark_home()}/jars/*", main, *arguments]


async def run_executor(env_file: Path, stopping: asyncio.Event) -> int:
    """Run it until ``stopping``, or until the driver ends it; its exit code."""
    command = executor_command(os.environ)
    with tempdir("spark-executor") as directory:
        environment = java_environment(directory, env_file) | {"LOG4J_CONFIGURATION_FILE": str(LOG_FILE)}
        process = await asyncio.create_subprocess_exec(
            *killed_with_parent(command),
            stdin=asyncio.subprocess.DEVNULL,
            env={**os.environ, **environment},
            cwd=directory,  # Java's temporary files are in its working directory
            process_group=0,
        )
        status = await unless_stopped(stopping, process.wait())
        if status is None:
            process.terminate()
            await ended(process)
        return status or 0
