# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes of one node on this machine, in namespaces of its own: control plane, kubelet, containerd,
kube-proxy and CoreDNS, from what scripts/kube-binaries has built."""

import json
import os
import pathlib
import shutil
import signal
import subprocess

import charts
import clusters
import processes

BUILT = ("helm", "kubectl", "kubelet", "kube-scheduler", "kube-controller-manager", "kube-apiserver", "kube-proxy", "coredns")
PACKAGES = {
    "etcd": "etcd-server", "containerd": "containerd", "ctr": "containerd", "runc": "runc", "iptables": "iptables",
    "ip": "iproute2", "nsenter": "util-linux",
}  # fmt: skip
PATH = f"{charts.CACHE}:{os.environ['PATH']}:/usr/sbin:/sbin"
PLUGINS = pathlib.Path("/usr/lib/cni")
# Of the node, in its own network.
ADDRESS = "10.99.0.1"
NODE = "node-1"
START_SECONDS = 180
# Kubelet sets these for the whole host.
SYSCTLS = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes")

TEXTS = pathlib.Path(__file__).with_name("kubernetes")


def missing():
    """What keeps a Kubernetes from running here; empty when nothing does."""
    if reason := clusters.not_chosen("kubernetes", "scripts/kube-test"):
        return reason
    absent = [name for name in BUILT if shutil.which(name, path=PATH) is None]
    if absent:
        return f"{', '.join(absent)} cannot be found; build them once with scripts/kube-binaries"
    absent = sorted({package for name, package in PACKAGES.items() if shutil.which(name, path=PATH) is None})
    if absent or not (PLUGINS / "bridge").exists():
        return f"apt-get install {' '.join(absent)} containernetworking-plugins"
    return "" if os.getuid() == 0 else "a Kubernetes is run as root"


class Cluster:
    """A context manager. `folder` has all files and is removed with their mounts gone."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self._daemons = {}

    def __enter__(self):
        self.folder.mkdir(parents=True)
        self._sysctls = {name: pathlib.Path("/proc/sys", name).read_text() for name in SYSCTLS}
        self._namespace = subprocess.Popen(
            ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child",
             "bash", "-c", "trap : TERM; echo; while :; do sleep 1000 & wait; done"],
            stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        try:
            self._namespace.stdout.readline()
            self._pid = next(p.pid for p in processes.descendants(self._namespace.pid) if p.parent == self._namespace.pid)
            self._configure()
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        # Pods end while containerd lives, so that their networks and groups go with them.
        if self._daemons.get("containerd"):
            listed = self.run("ctr", "-a", self._socket, "-n", "k8s.io", "tasks", "list", "-q", check=False).stdout.split()
            self._end("kubelet")
            for task in listed:
                self.run("ctr", "-a", self._socket, "-n", "k8s.io", "tasks", "delete", "-f", task, check=False)
        for name in list(self._daemons):
            self._end(name)
        self._namespace.kill()
        self._namespace.wait()
        for name, value in self._sysctls.items():
            pathlib.Path("/proc/sys", name).write_text(value)
        for group in sorted(pathlib.Path("/sys/fs/cgroup").glob("**/kubepods*"), key=lambda p: -len(p.parts)):
            for path, _, _ in os.walk(group, topdown=False):
                try:
                    os.rmdir(path)
                except OSError:
                    pass

    # Commands on the node.

    def _inside(self, *command):
        return ["nsenter", "-t", str(self._pid), "-n", "-m", "-p", "--", *map(str, command)]

    def environment(self, **changes):
        foreign = ("MTMC_", "KUBE")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        home = self.folder / "home"
        return {**kept, "PATH": PATH, "HOME": str(home), "KUBECONFIG": str(self.folder / "kubeconfig"), **changes}

    def run(self, *command, seconds=120, check=True, **changes):
        done = subprocess.run(
            self._inside(*command), env=self.environment(**changes), capture_output=True, text=True,
            timeout=seconds, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if check:
            assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}\n{self.state()}"
        return done

    def sh(self, commands, seconds=600, **changes):
        return self.run("bash", "-euc", f"cd {charts.ROOT}\n{commands}", seconds=seconds, **changes)

    def kubectl(self, *command, seconds=120):
        return self.run("kubectl", *command, seconds=seconds).stdout

    def json(self, *command):
        return json.loads(self.kubectl(*command, "-o", "json"))

    def state(self):
        """What a person would look at first."""
        if "kubelet" not in self._daemons:
            return "".join(f"--- {p.name}\n{p.read_text(errors='replace')[-1500:]}\n" for p in self.folder.glob("*.log"))
        shown = []
        for command in (("get", "pods", "-A", "-o", "wide"), ("get", "events", "-A", "--sort-by=.lastTimestamp")):
            done = self.run("kubectl", *command, check=False)
            shown.append((done.stdout + done.stderr)[-4000:])
        return "\n".join(shown)

    # Daemons.

    def _daemon(self, name, *command):
        with open(self.folder / f"{name}.log", "ab") as log:
            self._daemons[name] = subprocess.Popen(
                self._inside(*command), env=self.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def _end(self, name):
        daemon = self._daemons.pop(name, None)
        if daemon is None:
            return
        for process in processes.descendants(daemon.pid):
            if process.parent == daemon.pid:
                os.kill(process.pid, signal.SIGTERM)
        try:
            daemon.wait(20)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def _await(self, what, *command, seconds=START_SECONDS):
        def look():
            for name, daemon in self._daemons.items():
                assert daemon.poll() is None, f"{name} ended\n{(self.folder / f'{name}.log').read_text()[-3000:]}"
            return self.run(*command, check=False, seconds=30).returncode == 0

        processes.eventually(look, seconds, what, pause=0.3)

    def _configure(self):
        names = {"FOLDER": str(self.folder), "ADDRESS": ADDRESS, "PLUGINS": str(PLUGINS)}
        for source in TEXTS.iterdir():
            text = source.read_text()
            for name, value in names.items():
                text = text.replace(f"@{name}@", value)
            (self.folder / source.name).write_text(text)
        for name in ("home", "pki", "net.d"):
            (self.folder / name).mkdir()
        (self.folder / "bridge.conflist").rename(self.folder / "net.d/bridge.conflist")
        self._socket = self.folder / "containerd.sock"
        self.run("bash", "-euc", f"""
            ip link set lo up
            ip link add ci0 type bridge
            ip address add {ADDRESS}/24 dev ci0
            ip link set ci0 up
            ip route add default via {ADDRESS} dev ci0
            echo 1 > /proc/sys/net/ipv4/ip_forward
            mount --bind {self.folder}/resolv.conf /etc/resolv.conf
            mkdir -p /run/netns
            mount -t tmpfs tmpfs /run/netns
            openssl genrsa -out {self.folder}/pki/accounts.key 2048""")  # fmt: skip

    def _start(self):
        pki, config = self.folder / "pki", f"--kubeconfig={self.folder}/kubeconfig"
        self._daemon(
            "etcd", "etcd", "--data-dir", self.folder / "etcd", "--unsafe-no-fsync",
            "--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
            "--listen-peer-urls=http://127.0.0.1:2380",
        )  # fmt: skip
        self._daemon("containerd", "containerd", "--config", self.folder / "containerd.toml")
        self._daemon(
            "apiserver", "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", f"--advertise-address={ADDRESS}",
            "--secure-port=6443", f"--cert-dir={pki}", "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={pki}/accounts.key", f"--service-account-key-file={pki}/accounts.key",
            "--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=Node,RBAC", "--allow-privileged=true",
            f"--token-auth-file={self.folder}/tokens.csv", "--kubelet-preferred-address-types=InternalIP",
        )  # fmt: skip
        self._await("the API server is ready", "kubectl", "get", "--raw=/readyz")
        self._daemon(
            "controllers", "kube-controller-manager", config, "--leader-elect=false", "--use-service-account-credentials",
            f"--service-account-private-key-file={pki}/accounts.key", f"--root-ca-file={pki}/apiserver.crt",
        )  # fmt: skip
        self._daemon("scheduler", "kube-scheduler", config, "--leader-elect=false")
        self._daemon("coredns", "coredns", "-conf", self.folder / "Corefile")
        self._daemon(
            "kubelet", "kubelet", config, f"--config={self.folder}/kubelet.yaml", f"--hostname-override={NODE}",
            f"--node-ip={ADDRESS}", f"--root-dir={self.folder}/kubelet", f"--cert-dir={self.folder}/kubelet-pki",
        )  # fmt: skip
        self._daemon(
            "proxy", "kube-proxy", config, f"--hostname-override={NODE}", "--proxy-mode=iptables", "--cluster-cidr=10.244.0.0/16",
            "--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0",
        )  # fmt: skip
        self._await("the node is ready", "kubectl", "wait", f"node/{NODE}", "--for=condition=Ready", "--timeout=5s")
        self._await("there is an account", "kubectl", "get", "serviceaccount", "default")

    def import_image(self, archive):
        self.run("ctr", "-a", self._socket, "-n", "k8s.io", "images", "import", archive, seconds=300)
