"""A JVM that ``spark-submit`` has started, in the place of ours (``spark_jvm``).

Then the master, the resources and the secret of Spark are spark-submit's business, and the replicator adds what its
tasks rest on. The executors get our code from the package that was submitted, and read the settings file of their host.
"""

import dataclasses
import logging
import os
import socket
from collections.abc import Mapping
from pathlib import Path

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError

from appliance.errors import ProcessFailed, SettingsError
from appliance.runtime.child_process import die_with
from appliance.settings.cross_checks import tasks_fault
from appliance.settings.values import EngineSettings
from appliance.spark.configuration import Application, submitted_configuration
from appliance.spark.spark_jvm import driver_host

log = logging.getLogger("appliance.replicator")

_PORT, _SECRET, _PINNED = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "PYSPARK_PIN_THREAD"


class SubmittedJvm:
    """The JVM of ``spark-submit``, which is our parent process and ends after us; as ``SparkJvm``.

    ``entries`` are settings of Spark's that the replicator adds.
    """

    def __init__(self, environment: Mapping[str, str], tempdir: Path) -> None:
        """Connect to it; SettingsError if it was started without the setting by which our threads share connections."""
        if environment.get(_PINNED, "true").lower() != "false":
            raise SettingsError([f"{_PINNED}: expected false, in spark-submit's environment and its driver's"])
        self.tempdir = tempdir
        self.entries: Mapping[str, str] = {}
        self._address = int(environment[_PORT]), environment[_SECRET]
        self._parent = os.getppid()
        die_with(self._parent)
        self._submitted = self._settings()

    def _settings(self) -> dict[str, str]:
        """The settings that spark-submit was given."""
        port, secret = self._address
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=secret))
        try:
            return {entry._1(): entry._2() for entry in gateway.jvm.org.apache.spark.SparkConf().getAll()}
        except (Py4JError, OSError) as error:
            raise ProcessFailed("the JVM of spark-submit does not answer") from error
        finally:
            gateway.close()

    def take(self, application: Application) -> EngineSettings:
        """The settings on the master that spark-submit was given; SettingsError if they do not fit a cluster."""
        engine, master = application.engine, self._submitted.get("spark.master", "")
        host = self._submitted.get("spark.driver.host", engine.spark_driver_host)
        engine = dataclasses.replace(engine, spark_master=master, spark_driver_host=host)
        if engine.in_a_cluster:
            if fault := tasks_fault(engine):
                raise SettingsError([fault])
            engine = dataclasses.replace(engine, spark_driver_host=_driver_host(engine))
            if self._submitted.get("spark.authenticate") != "true":
                log.warning("spark.authenticate is not true: whoever reaches Spark's ports can run programs there")
        self.entries = submitted_configuration(dataclasses.replace(application, engine=engine), self._submitted)
        return engine

    async def gateway(self) -> tuple[int, str]:
        """The port for PySpark's calls, and their secret."""
        return self._address

    def require_running(self) -> None:
        """Check that it runs; ProcessFailed if it has ended."""
        if os.getppid() != self._parent:
            raise ProcessFailed("the JVM of spark-submit has ended")

    def kill(self) -> None:
        """Do nothing: no job runs in it yet, and spark-submit ends it after us."""


def _driver_host(engine: EngineSettings) -> str:
    """The address of this host for executors: YARN's master has no address from which ours would follow."""
    if engine.spark_driver_host or "://" in engine.spark_master:
        return driver_host(engine)
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError as error:
        raise SettingsError(["SPARK_DRIVER_HOST: missing, and this host does not know its own name"]) from error
