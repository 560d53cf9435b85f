"""The chart as Helm renders it: the values that it refuses, and what the containers get."""

import json
from pathlib import Path
from typing import Any

import pytest

from appliance.settings.engine import EngineSettings
from appliance.settings.env_file import read_settings
from deploy.helm.variables import ROLES
from deploy.render.container import by_tls, healthcheck
from deploy.render.limits import CONTROL_CENTER_MEMORY, replicator_memory, tunnel_memory
from tests.support.chart import (
    DESTINATION,
    SIDES,
    SOURCE,
    changed,
    containers,
    only,
    pod_of,
    refusal,
    rendered,
    settings_files,
)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"sides": "source"}, "'sides' not allowed"),
        ({"side": "both"}, "'/side'"),
        ({"settings": {"SOURCE_API_KEYS": "x"}}, "'SOURCE_API_KEYS' not allowed"),
        ({"settings": {"CONSOLE_LISTEN": "0.0.0.0:80"}}, "'CONSOLE_LISTEN' not allowed"),
        ({"settings": {"SOURCE_API_KEY": "two\nlines"}}, "'/settings/SOURCE_API_KEY'"),
        ({"files": {"SOURCE_CA": {"secret": "s", "key": "k"}}}, "'SOURCE_CA' not allowed"),
        ({"files": {"SOURCE_CA_FILE": {"secret": "s", "configMap": "s", "key": "k"}}}, "'/files/SOURCE_CA_FILE'"),
        ({"replicator": {"resource": {}}}, "'resource' not allowed"),
        ({"dns": {"upstream": "kube-dns"}}, "'/dns/upstream'"),
        ({"networkPolicy": {"peers": ["203.0.113.7"]}}, "'/networkPolicy/peers/0'"),
        ({"image": {"digest": "latest"}}, "'/image/digest'"),
    ],
    ids=str,
)
def test_a_value_that_is_unknown_or_unusable_is_refused_by_its_name(values: dict[str, Any], named: str) -> None:
    assert named in refusal({"side": "source", **values})


def test_all_faults_between_values_are_named_at_once() -> None:
    values = changed(DESTINATION, SOURCE_CLUSTER_ID=None, DESTINATION_BROKER_SERVERS=None, SPARK_MASTER="local[2]")
    files = {"SOURCE_API_SECRET_FILE": {"secret": "s", "key": "k"}}
    said = refusal({**values, "dns": {}, "files": files, "executors": {"enabled": True}})
    for fault in (
        "settings.SOURCE_CLUSTER_ID: missing",
        "settings.DESTINATION_BROKER_SERVERS: missing",
        "settings.SPARK_MASTER: expected nothing",
        "files.SOURCE_API_SECRET_FILE, settings.SOURCE_API_SECRET: expected one of them",
        "dns.upstream: missing: kubectl -n kube-system get service kube-dns",
    ):
        assert fault in said


def test_a_secret_beside_a_secret_of_the_users_is_refused() -> None:
    said = refusal({**DESTINATION, "existingSecret": {"name": "mine"}})
    for name in ("SHARED_SECRET", "SOURCE_API_SECRET", "DESTINATION_API_SECRET"):
        assert f"settings.{name}: expected it in the Secret mine, or in files.{name}_FILE" in said


def test_a_side_without_a_tunnel_has_no_source() -> None:
    assert "side: expected destination" in refusal(changed(SOURCE, SOURCE_ROUTE="direct"))


@pytest.mark.parametrize("side", SIDES)
def test_each_container_reads_exactly_the_settings_of_its_role(side: str, tmp_path: Path) -> None:
    given: dict[str, str] = SIDES[side]["settings"]
    for container, text in settings_files(rendered(SIDES[side])):
        file = tmp_path / f"{container}.sh"
        file.write_text(text)
        file.chmod(0o400)
        settings = read_settings(file, ROLES[container], {})
        secret = settings.tunnel.secret.reveal()
        if container in ("replicator", "control-center"):
            assert secret == ""
        else:
            assert secret == given["SHARED_SECRET"]
        assert ("DESTINATION_API_SECRET" in text) == (
            container in ("replicator", "control-center", "doctor-destination")
        )


def test_numbers_and_booleans_are_written_as_setenv_sh_has_them() -> None:
    values = changed(DESTINATION, COMMIT_BYTES=16777216, SLICE_SECONDS=0.5, CONFIGS_SYNC=False, ACLS_SYNC=True)
    text = dict(settings_files(rendered(values)))["replicator"]
    for line in ("COMMIT_BYTES='16777216'", "SLICE_SECONDS='0.5'", "CONFIGS_SYNC='no'", "ACLS_SYNC='yes'"):
        assert f"export {line}\n" in text


@pytest.mark.parametrize("side", SIDES)
def test_a_secret_of_the_settings_is_in_a_secret_and_nowhere_else(side: str) -> None:
    documents = rendered(SIDES[side], "--set", "serviceMonitor.enabled=true,prometheusRule.enabled=true")
    others = json.dumps([document for document in documents if document["kind"] != "Secret"])
    for name, value in SIDES[side]["settings"].items():
        if name.endswith("_SECRET"):
            assert json.dumps(value)[1:-1] not in others


def test_a_file_is_mounted_where_its_variable_says_and_only_for_those_who_read_it() -> None:
    files = {
        "SHARED_SECRET_FILE": {"secret": "link", "key": "shared"},
        "DESTINATION_CA_FILE": {"configMap": "grape-ca", "key": "ca.crt"},
    }
    pod = pod_of(rendered({**changed(DESTINATION, SHARED_SECRET=None), "files": files}))
    readers = {"SHARED_SECRET_FILE": {"gateway"}, "DESTINATION_CA_FILE": {"replicator", "control-center"}}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for variable, names in readers.items():
        target = f"/etc/appliance/files/{variable}"
        entry = {"name": variable, "value": target}
        assert {name for name, container in containers(pod).items() if entry in container["env"]} == names
        for name in names:
            projected = volumes[f"settings-{name}"]["projected"]
            assert projected["defaultMode"] == 0o440
            paths = [
                item["path"] for source in projected["sources"] for each in source.values() for item in each["items"]
            ]
            assert f"files/{variable}" in paths


@pytest.mark.parametrize("side", SIDES)
def test_a_pod_ends_its_containers_by_the_checks_of_docker(side: str) -> None:
    ports = {"tunnel": 8081, "gateway": 8081, "replicator": 8080, "control-center": 8082}
    tls = {name: {"secret": "page", "key": name} for name in ("CONSOLE_TLS_CERTIFICATE_FILE", "CONSOLE_TLS_KEY_FILE")}
    for files in ({}, tls):
        for name, container in containers(pod_of(rendered({**SIDES[side], "files": files}))).items():
            check = healthcheck(ports[name])
            if files and name == "control-center":
                check = by_tls(check)
            probes = [container[probe] for probe in ("startupProbe", "livenessProbe")]
            assert [probe["exec"]["command"] for probe in probes] == [["python", "-c", check]] * 2


@pytest.mark.parametrize(
    ("engine", "connections"),
    [
        (EngineSettings(tasks=2), 4096),
        (EngineSettings(tasks=7, spark_driver_memory="2g"), 4200),
        (EngineSettings(tasks=1), 9000),
    ],
)
def test_the_sizes_are_those_of_docker(engine: EngineSettings, connections: int) -> None:
    sizes = {"TASKS": engine.tasks, "SPARK_DRIVER_MEMORY": engine.spark_driver_memory}
    limits: dict[str, str] = {}
    for audits in (False, True):
        more = {"AUDIT_PATH": "s3a://audit/table"} if audits else {}
        for values in (SOURCE, DESTINATION):
            documents = rendered(changed(values, TUNNEL_CONNECTIONS_MAX=connections, **sizes, **more))
            for name, container in containers(pod_of(documents)).items():
                limits[name] = container["resources"]["limits"]["memory"]
        assert limits == {
            "tunnel": f"{tunnel_memory(connections)}Mi",
            "gateway": f"{tunnel_memory(connections)}Mi",
            "replicator": f"{replicator_memory(engine, 1, audits=audits)}Mi",
            "control-center": f"{CONTROL_CENTER_MEMORY}Mi",
        }
    for hosts in ("tunnel.orange.example", "a.orange.example,b.orange.example"):
        settings = {"TUNNEL_SSH": "u@bastion:22", "SOURCE_SIDE_TUNNEL_IP": hosts}
        by_ssh = pod_of(rendered(changed(DESTINATION, TUNNEL_CONNECTIONS_MAX=connections, **settings)))
        gateway = containers(by_ssh)["gateway"]["resources"]["limits"]["memory"]
        assert gateway == f"{tunnel_memory(connections, ssh_servers=len(hosts.split(',')))}Mi"


def test_each_of_several_destination_vms_may_dial_the_tunnel() -> None:
    several = rendered(changed(SOURCE, DESTINATION_SIDE_TUNNEL_IP="203.0.113.7, 2001:db8::9"))
    (policy,) = (each for each in several if each["kind"] == "NetworkPolicy")
    blocks = [
        peer["ipBlock"]["cidr"]
        for rule in policy["spec"]["ingress"]
        for peer in rule.get("from", ())
        if "ipBlock" in peer
    ]
    assert blocks[:2] == ["203.0.113.7/32", "2001:db8::9/128"]


def test_without_tasks_in_the_settings_there_are_two_whatever_the_cores_of_the_node() -> None:
    assert "export TASKS='2'\n" in dict(settings_files(rendered(DESTINATION)))["replicator"]


def test_executors_have_a_task_for_each_core_and_with_sql_for_two() -> None:
    values = {**DESTINATION, "executors": {"enabled": True, "instances": 3, "cores": 2}}
    assert "export TASKS='6'\n" in dict(settings_files(rendered(values)))["replicator"]
    sql = {"REPLICA_TRANSFORM_SQL_FILE": {"configMap": "sql", "key": "mask.sql"}}
    assert "export TASKS='3'\n" in dict(settings_files(rendered({**values, "files": sql})))["replicator"]


def test_a_changed_setting_recreates_the_pods_and_another_bound_does_not() -> None:
    def digest(**settings: object) -> str:
        documents = rendered(changed(DESTINATION, **settings))
        annotations: dict[str, str] = only(documents, "Deployment")["spec"]["template"]["metadata"]["annotations"]
        return annotations["kafka-cloud-replicator/settings"]

    assert digest() == digest(MAX_BYTES_PER_SECOND=1000)
    assert len({digest(), digest(DESTINATION_API_SECRET="another"), digest(LANES=4)}) == 3


def test_four_variables_are_a_destination_without_gateway_and_shim() -> None:
    four = {
        "KAFKA_CLUSTERS_SOURCE_BOOTSTRAP_SERVERS": "source:9092",
        "KAFKA_CLUSTERS_SOURCE_TOPIC": "a",
        "KAFKA_CLUSTERS_DESTINATION_BOOTSTRAP_SERVERS": "destination:9092",
        "KAFKA_CLUSTERS_DESTINATION_TOPIC": "b",
    }
    pod = pod_of(rendered({"side": "destination", "settings": four}))
    assert containers(pod).keys() == {"replicator", "control-center"}
    assert "dnsPolicy" not in pod


def test_a_user_that_the_image_does_not_know_gets_a_name() -> None:
    security = dict.fromkeys(("runAsUser", "runAsGroup", "fsGroup"))
    for values in SIDES.values():
        named = containers(pod_of(rendered({**values, "podSecurityContext": security})))
        assert "passwd" in named
        mounts = [mount["mountPath"] for name in named if name != "passwd" for mount in named[name]["volumeMounts"]]
        assert mounts.count("/etc/passwd") == len(named) - 1
        assert "passwd" not in containers(pod_of(rendered(values)))


def test_case_1395_the_replicator_alone_may_ask_kubernetes_for_pods() -> None:
    """The gateway and the control center had the token that makes pods, too."""
    pod = pod_of(rendered({**DESTINATION, "executors": {"enabled": True}}))
    assert pod["automountServiceAccountToken"] is False
    (token,) = (volume["projected"] for volume in pod["volumes"] if volume["name"] == "token")
    assert token["sources"][0]["serviceAccountToken"]["path"] == "token"
    mounts = {name: [mount["name"] for mount in each["volumeMounts"]] for name, each in containers(pod).items()}
    assert [name for name, volumes in mounts.items() if "token" in volumes] == ["replicator"]


@pytest.mark.parametrize("key", [2**53, 12345678901234567890, -(2**63)])
def test_case_1396_a_number_that_helm_would_change_is_refused_and_not_written_as_another(key: int) -> None:
    """Helm reads numbers as doubles: the key 12345678901234567890 without quotes became -9223372036854775808."""
    assert "'/settings/SOURCE_API_KEY'" in refusal(changed(DESTINATION, SOURCE_API_KEY=key))
    text = dict(settings_files(rendered(changed(DESTINATION, SOURCE_API_KEY=str(key)))))["replicator"]
    assert f"export SOURCE_API_KEY='{key}'\n" in text


def test_case_1398_a_setting_beside_a_secret_of_the_users_arrives_as_it_was_written() -> None:
    """As an environment variable, Kubernetes took $$ for $, and replaced $(HOME)."""
    values = {"side": "destination", "existingSecret": {"name": "mine"}, "dns": {"upstream": "10.96.0.10"}}
    pod = pod_of(rendered({**values, "settings": {"REPLICA_TOPICS_SOURCE_REGEX": "(a|b$$)$|$(HOME)"}}))
    entry = {"name": "REPLICA_TOPICS_SOURCE_REGEX", "value": "(a|b$$$$)$$|$$(HOME)"}
    assert entry in containers(pod)["replicator"]["env"]


EMPTY = {
    **dict.fromkeys(("files", "podSecurityContext", "extraEnv", "podLabels", "affinity", "tolerations")),
    **{name: {"resources": None} for name in ("tunnel", "gateway", "controlCenter")},
    "replicator": dict.fromkeys(("resources", "conf", "extraVolumes", "extraVolumeMounts")),
    "networkPolicy": dict.fromkeys(("peers", "monitoring", "controlCenter", "dns", "brokers", "extraEgress")),
}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", EMPTY)
def test_case_1399_a_value_with_nothing_after_its_colon_is_an_empty_one(side: str, name: str) -> None:
    """`files:` with all lines below it commented, for one, ended Helm with an error of Go."""
    rendered({**SIDES[side], name: EMPTY[name]})
