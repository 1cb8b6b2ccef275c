# SPDX-License-Identifier: Apache-2.0
"""deploy/helm on a real Kubernetes: what docs/deploy/kubernetes.md says, and jobs that outlive what happens to pods.

The tests go on from each other, in their order."""

import json
import os
import pathlib
import shutil

import containers
import documented
import kubernetes_cluster
import processes
import pytest

ROLES = ("coordinator", "policyd", "gateway", "worker", "cli")
NAMESPACE = "mtmc"
ENDPOINT = "mtmc-coordinator.mtmc.svc.cluster.local:50151"
PROBLEM = documented.ROOT / "examples/problems/scaled_softmax.py"
JOB_SECONDS = 600

VOLUME = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: store}
spec:
  capacity: {storage: 2Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: FOLDER, type: DirectoryOrCreate}
"""

pytestmark = pytest.mark.skipif(bool(kubernetes_cluster.missing()), reason=kubernetes_cluster.missing())


class Site:
    """A cluster with the images of this build, and somebody who calls the service in it."""

    def __init__(self, cluster, folder):
        self.cluster = cluster
        self.folder = folder

    def page(self, word, changes=None, seconds=900):
        """Runs a block of the page in a folder of the caller."""
        text = documented.replaced(documented.block("kubernetes", word), changes or {})
        return self.cluster.sh(text, seconds=seconds).stdout

    def mtmc(self, *command, seconds=JOB_SECONDS, check=True):
        return self.cluster.run(
            os.environ["MTMC_BIN"] + "/mtmc", *command, seconds=seconds, check=check, MTMC_ENDPOINT=ENDPOINT,
            MTMC_TLS_CA=str(self.folder / "ca.pem"), MTMC_TOKEN_FILE=str(self.folder / "admin.token"),
        )  # fmt: skip

    def pods(self):
        """Component to the names of its pods that are not about to end."""
        found = {}
        for pod in self.cluster.json("get", "pods", "-n", NAMESPACE)["items"]:
            component = pod["metadata"]["labels"].get("app.kubernetes.io/component")
            if "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] in ("Pending", "Running"):
                found.setdefault(component, []).append(pod["metadata"]["name"])
        return found

    def open_job(self, seed, trials):
        """A job that has done something and has more to do."""
        done = self.mtmc("-o", "json", "jobs", "create", PROBLEM, "--trials", trials, "--seed", seed, "--no-records")
        job = json.loads(done.stdout)["name"]
        self.await_trials(job, 1)
        return job

    def job(self, job):
        done = self.mtmc("-o", "json", "jobs", "get", job, check=False, seconds=60)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def trials(self, job):
        done = self.mtmc("-o", "json", "candidates", "list", job, check=False, seconds=60)
        return len(json.loads(done.stdout).get("candidates", [])) if done.returncode == 0 else 0

    def await_trials(self, job, number):
        processes.eventually(lambda: self.trials(job) > number, JOB_SECONDS, f"{job} has tried more than {number}", pause=1)

    def await_end(self, job):
        ends = ("STATE_SUCCEEDED", "STATE_FAILED", "STATE_CANCELLED")
        ended = processes.eventually(
            lambda: (found := self.job(job)).get("state") in ends and found, JOB_SECONDS, f"{job} ends", pause=1
        )
        assert ended["state"] == "STATE_SUCCEEDED", ended


@pytest.fixture(scope="module")
def site(images):
    # Sockets have short names.
    folder = pathlib.Path(f"/tmp/mtmc-kube-{os.getpid()}")
    folder.mkdir()
    try:
        with kubernetes_cluster.Cluster(folder / "node") as cluster:
            for archive in archives(images, folder):
                cluster.import_image(archive)
                archive.unlink()
            (folder / "volume").mkdir()
            os.chown(folder / "volume", 65532, 65532)
            (folder / "volume.yaml").write_text(VOLUME.replace("FOLDER", str(folder / "volume")))
            cluster.kubectl("apply", "-f", folder / "volume.yaml")
            containers.python_folder(folder / "python")
            yield Site(cluster, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def archives(engine, folder):
    """Files of all images and of the container that holds a pod's namespaces, one at a time."""
    pause = folder / "pause"
    pause.mkdir()
    containers.must(["gcc", "-O2", "-static", "-o", pause / "pause", kubernetes_cluster.TEXTS / "pause.c"])
    (pause / "Containerfile").write_text('FROM scratch\nCOPY pause /pause\nUSER 65535:65535\nENTRYPOINT ["/pause"]\n')
    engine.build("localhost/pause:1", pause)
    for name in ["pause:1", *(f"mtmc-{role}:0.1.0" for role in ROLES)]:
        archive = folder / "image.tar"
        engine.podman("save", "--format", "oci-archive", "-o", archive, f"localhost/{name}", seconds=300)
        yield archive


def test_the_page_installs_it(site):
    site.page("helm install", {
        "--set image.registry=registry.example/team": (
            f"--set workers.python.volume.hostPath.path={site.folder}/python"
            " --set workers.classes.cpu.resources.requests.cpu=100m --set coordinator.resources.requests.cpu=100m"
        ),
    })  # fmt: skip
    assert {component: len(names) for component, names in site.pods().items()} == {
        "coordinator": 1, "policyd": 1, "gateway": 1, "worker": 1,
    }  # fmt: skip


def test_the_page_runs_a_job_from_outside(site):
    printed = site.page("port-forward", {"ca.pem": f"{site.folder}/ca.pem", "admin.token": f"{site.folder}/admin.token",
                                         "mtmc workers": f"{os.environ['MTMC_BIN']}/mtmc workers",
                                         "mtmc jobs": f"{os.environ['MTMC_BIN']}/mtmc jobs",
                                         "50151 &": "50151 > /dev/null & trap 'kill %1' EXIT; sleep 3"})  # fmt: skip
    assert "speedup" in printed


def test_only_workers_leave_the_standard_restricted(site):
    done = site.cluster.run(
        "kubectl", "label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted", "--dry-run=server"
    )
    warned = [line for line in done.stderr.splitlines() if "mtmc-" in line]
    assert warned and all("mtmc-worker" in line for line in warned), done.stderr


def test_nobody_gets_in_without_a_token(site):
    done = site.cluster.run(
        os.environ["MTMC_BIN"] + "/mtmc", "jobs", "list", check=False, MTMC_ENDPOINT=ENDPOINT,
        MTMC_TLS_CA=str(site.folder / "ca.pem"),
    )  # fmt: skip
    assert done.returncode != 0 and "[TOKEN_MISSING]" in done.stderr, done.stderr


def test_a_job_outlives_every_pod(site):
    job = site.open_job(11, 6)
    for component in ("gateway", "policyd", "worker", "coordinator"):
        before = site.trials(job)
        site.cluster.kubectl("delete", "pod", "-n", NAMESPACE, *site.pods()[component], "--grace-period=0", "--force")
        if component == "worker":
            site.await_trials(job, before)
    site.await_end(job)


def test_a_drained_node_costs_a_job_nothing_but_time(site):
    job = site.open_job(12, 6)
    before = site.trials(job)
    node = kubernetes_cluster.NODE
    site.cluster.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=360s", seconds=400)
    assert site.cluster.json("get", "pods", "-n", NAMESPACE, "--field-selector=status.phase=Running")["items"] == []
    site.cluster.kubectl("uncordon", node)
    site.await_end(job)
    assert site.trials(job) > before


def test_an_upgrade_and_the_way_back_leave_jobs_open_and_secrets_as_they_are(site):
    secrets = [site.cluster.json("get", "secret", "-n", NAMESPACE, name)["data"] for name in ("mtmc-tls", "mtmc-tokens")]
    job = site.open_job(13, 6)
    site.page("helm rollback", {"--reset-then-reuse-values": "--reset-then-reuse-values --set log.level=debug"})
    assert [site.cluster.json("get", "secret", "-n", NAMESPACE, name)["data"] for name in ("mtmc-tls", "mtmc-tokens")] == secrets
    site.await_end(job)
    history = json.loads(site.cluster.run("helm", "history", "mtmc", "-n", NAMESPACE, "-o", "json").stdout)
    assert [entry["status"] for entry in history] == ["superseded", "superseded", "deployed"]


def test_an_upgrade_that_fails_is_undone(site):
    done = site.cluster.sh(
        f"helm upgrade mtmc deploy/helm/mtmc -n {NAMESPACE} --reset-then-reuse-values --atomic --timeout 60s --set image.tag=0.0.0",
        check=False,
    )
    assert done.returncode != 0 and "rolled back" in done.stderr.lower().replace("-", " "), done.stderr
    assert site.mtmc("workers", "list").returncode == 0


def test_the_page_uninstalls_it_and_leaves_the_store(site):
    site.page("helm uninstall")

    def left():
        return site.cluster.json("get", "all,secret,networkpolicy,pdb", "-n", NAMESPACE)["items"]

    # Pods that are about to end are there until they have.
    processes.eventually(lambda: left() == [], 120, "nothing is left", pause=1)
    assert len(site.cluster.json("get", "pvc", "-n", NAMESPACE)["items"]) == 1
    assert (site.folder / "volume/mtmc.db").exists()
