"""The command line of each component of a node."""

from testbed.kubernetes.layout import ADDRESS, DOMAIN, NAME, SERVICES, Layout

_ETCD, _ETCD_PEERS = "http://127.0.0.1:2379", "http://127.0.0.1:2380"


def etcd(layout: Layout) -> list[str]:
    """Etcd, without waits for the disk: the node does not outlive a power cut."""
    options = {
        "data-dir": layout.directory / "etcd",
        "listen-peer-urls": _ETCD_PEERS,
        "initial-advertise-peer-urls": _ETCD_PEERS,
        "initial-cluster": f"default={_ETCD_PEERS}",
        "listen-client-urls": _ETCD,
        "advertise-client-urls": _ETCD,
    }
    return ["etcd", "--unsafe-no-fsync", *_options(options)]


def api_server(layout: Layout) -> list[str]:
    """The API server."""
    own, admin, tokens = (layout.certificate(who) for who in ("api", "admin", "tokens"))
    options = {
        "etcd-servers": _ETCD,
        "service-cluster-ip-range": SERVICES,
        "advertise-address": ADDRESS,
        "secure-port": 6443,
        "cert-dir": layout.directory / "api",
        "tls-cert-file": own,
        "tls-private-key-file": own,
        "client-ca-file": layout.authority,
        "authorization-mode": "Node,RBAC",
        "service-account-key-file": tokens,
        "service-account-signing-key-file": tokens,
        "service-account-issuer": f"https://kubernetes.default.svc.{DOMAIN}",
        "kubelet-client-certificate": admin,
        "kubelet-client-key": admin,
        "kubelet-preferred-address-types": "InternalIP",
    }
    return ["kube-apiserver", "--allow-privileged", *_options(options)]


def controller_manager(layout: Layout) -> list[str]:
    """The controllers."""
    options = {
        "service-account-private-key-file": layout.certificate("tokens"),
        "root-ca-file": layout.authority,
        "leader-elect": "false",
        "bind-address": "127.0.0.1",
        **_reaching_the_api(layout, "manager"),
    }
    return ["kube-controller-manager", "--use-service-account-credentials", *_options(options)]


def scheduler(layout: Layout) -> list[str]:
    """The scheduler."""
    own = {"leader-elect": "false", "bind-address": "127.0.0.1"}
    return ["kube-scheduler", *_options(own | _reaching_the_api(layout, "scheduler"))]


def kubelet(layout: Layout, configuration: str) -> list[str]:
    """The kubelet."""
    options = {
        "config": configuration,
        "kubeconfig": layout.kubeconfig("kubelet"),
        "hostname-override": NAME,
        "node-ip": ADDRESS,
        "root-dir": layout.directory / "kubelet",
        "cert-dir": layout.directory / "kubelet-serving",
    }
    return ["kubelet", *_options(options)]


def _reaching_the_api(layout: Layout, who: str) -> dict[str, object]:
    names = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
    return dict.fromkeys(names, layout.kubeconfig(who))


def _options(options: dict[str, object]) -> list[str]:
    return [f"--{name}={value}" for name, value in options.items()]
