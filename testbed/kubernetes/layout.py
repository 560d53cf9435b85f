"""The addresses and files of a node. All of them are the node's own, since it has namespaces of its own."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ADDRESS = "10.77.0.1"
"""The node's address."""
SERVICES = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"
DNS_SERVICE = "10.96.0.10"
PODS = "10.244.0.0/24"
DOMAIN = "cluster.local"
NAME = "node1"

PAUSE_IMAGE = "localhost/pause:1"


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of a node in its directory."""

    directory: Path

    def certificate(self, who: str) -> str:
        """The key and the certificate of a component, in one file."""
        return str(self.directory / f"{who}.pem")

    def kubeconfig(self, who: str) -> str:
        """The settings by which a component, or ``admin``, reaches the API."""
        return str(self.directory / f"{who}.kubeconfig")

    @property
    def authority(self) -> str:
        """The certificate of the authority that signs all others."""
        return str(self.directory / "ca.pem")

    @property
    def containerd(self) -> str:
        """The socket of containerd."""
        return str(self.directory / "containerd.sock")

    @property
    def hosts(self) -> Path:
        """The node's file of names, which pods do not see."""
        return self.directory / "hosts"

    def log(self, component: str) -> Path:
        """The output of a component."""
        return self.directory / f"{component}.log"

    def write(self, name: str, content: object) -> str:
        """Write a configuration: text, or a document in JSON, which is YAML as well; return its path."""
        path = self.directory / name
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        return str(path)


def kubeconfig(layout: Layout, who: str) -> dict[str, Any]:
    """The settings by which a component reaches the API."""
    certificate = layout.certificate(who)
    cluster = {"server": "https://127.0.0.1:6443", "certificate-authority": layout.authority}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "node", "cluster": cluster}],
        "users": [{"name": who, "user": {"client-certificate": certificate, "client-key": certificate}}],
        "contexts": [{"name": "node", "context": {"cluster": "node", "user": who}}],
        "current-context": "node",
    }


def containerd(layout: Layout, programs: Path) -> str:
    """The configuration of containerd, as TOML."""
    return f"""\
version = 2
root = "{layout.directory}/containerd"
state = "/run/containerd"
[plugins."io.containerd.internal.v1.opt"]
  path = "{layout.directory}/opt"
[grpc]
  address = "{layout.containerd}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{programs}/usr/lib/cni"
    conf_dir = "{layout.directory}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
"""


def pod_network() -> dict[str, Any]:
    """The network of pods: each has a cable to the node, which routes. Nothing enforces a NetworkPolicy."""
    ranges = [[{"subnet": PODS}]]
    addresses = {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": addresses}]}


def kubelet(layout: Layout) -> dict[str, Any]:
    """The configuration of the kubelet, which ends no pod for lack of disk: other work uses it too."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{layout.containerd}",
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "failSwapOn": False,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": layout.authority},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "clusterDNS": [DNS_SERVICE],
        "clusterDomain": DOMAIN,
        "resolvConf": "",
        "enforceNodeAllocatable": ["pods"],
        "evictionHard": {
            "memory.available": "50Mi",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
        },
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "nodeStatusUpdateFrequency": "5s",
        "syncFrequency": "10s",
        "volumePluginDir": str(layout.directory / "volume-plugins"),
    }


def kube_proxy(layout: Layout) -> dict[str, Any]:
    """The configuration of kube-proxy, which leaves the limits of connection tracking to the machine."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": layout.kubeconfig("proxy")},
        "mode": "nftables",
        "clusterCIDR": PODS,
        "hostnameOverride": NAME,
        "conntrack": {"maxPerCore": 0, "min": 0},
    }


def corefile(layout: Layout, forwarded: Mapping[str, str]) -> str:
    """The configuration of CoreDNS. It knows the cluster's names, and for those of some domains asks other servers."""
    zones = [f"{domain}:53 {{\n  bind {ADDRESS}\n  forward . {server}\n}}\n" for domain, server in forwarded.items()]
    return f"""\
.:53 {{
  bind {ADDRESS}
  errors
  kubernetes {DOMAIN} {{
    kubeconfig {layout.kubeconfig("admin")} node
    endpoint_pod_names
  }}
  cache 5
}}
{"".join(zones)}"""


def dns_service() -> list[dict[str, Any]]:
    """The service of the cluster's DNS, which leads to CoreDNS on the node."""
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns", "namespace": "kube-system"},
        "spec": {"clusterIP": DNS_SERVICE, "ports": ports},
    }
    labels = {"kubernetes.io/service-name": "kube-dns"}
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "kube-dns-node", "namespace": "kube-system", "labels": labels},
        "addressType": "IPv4",
        "ports": ports,
        "endpoints": [{"addresses": [ADDRESS], "conditions": {"ready": True}}],
    }
    return [service, endpoints]
