# SPDX-License-Identifier: Apache-2.0
"""deploy/slurm on a real Slurm: a worker a GPU, and preemption costs a job nothing but time."""

import os
import re
import subprocess

import documented
import problems
import processes
import pytest
import release
import service as services
import slurm_cluster
import stack as stacks

SCRIPT = documented.ROOT / "deploy/slurm/mtmc-worker.sbatch"
# Four workers start on as few as two cores.
START_SECONDS = 240
JOB_SECONDS = 400

needs_slurm = pytest.mark.skipif(bool(slurm_cluster.missing()), reason=slurm_cluster.missing())


@pytest.fixture(scope="module")
def whole_site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slurm")
    with services.Service(folder / "home") as service, slurm_cluster.Cluster(folder / "cluster") as cluster:
        yield Site(service, cluster)


@pytest.fixture
def site(whole_site):
    """The site without a job of Slurm, also after a test that failed in the middle."""
    yield whole_site
    whole_site.cancel_all()


class Site:
    """A cluster and the service that its workers work for. The service's folder is the
    home of a user, with mtmc installed as the page says."""

    def __init__(self, service, cluster):
        self.service = service
        self.cluster = cluster
        self.home = service.folder
        release.bundle(self.home)
        (self.home / "scratch").mkdir()
        self.sh(documented.block("slurm", "install --prefix"))
        self.sh(documented.replaced(documented.block("slurm", "mtmc.env\" <<END"), self.names(
            {
                "$HOME/venv/bin/python": stacks.PYTHON,
                'MTMC_WORKER_FLAGS="--tls-ca=$HOME/mtmc-ca.pem --token-file=$HOME/mtmc-worker.token"': "MTMC_DEVICE=opencl:0\nTMPDIR=$HOME/scratch",
            }
        )))  # fmt: skip

    def names(self, more=None):
        return {"service1:50151": self.service.endpoint, **(more or {})}

    def sh(self, commands, seconds=JOB_SECONDS):
        done = subprocess.run(
            ["bash", "-euc", commands], cwd=self.home, timeout=seconds, capture_output=True, text=True, check=False,
            env={
                **self.cluster.environment(), "HOME": str(self.home), "MTMC_INSTALL_ROOT": str(self.home / "root"),
                "SBATCH_OUTPUT": str(self.home / "worker-%A_%a.out"),
            },
        )  # fmt: skip
        assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def submit(self, *flags):
        """An array of workers; returns the number of its job and, once they serve, their names."""
        line = " ".join(["sbatch", "--parsable", *flags, f'"{SCRIPT}"', '"$HOME/mtmc.env"'])
        job = self.sh(line).strip()
        names = [f"workers/slurm-ci-{job}-{number}" for number in self.cluster.states(job)]
        self.service.await_workers(names, START_SECONDS)
        return job, names

    def output(self, job, number=0):
        path = self.home / f"worker-{job}_{number}.out"
        return path.read_text() if path.exists() else ""

    def await_output(self, job, number, text, seconds=START_SECONDS):
        processes.eventually(
            lambda: text in self.output(job, number), seconds, f"'{text}' of {job}_{number}: {self.output(job, number)}"
        )

    def cancel_all(self):
        self.cluster.cancel_all()
        self.service.await_workers([], 60)

    def cancel(self, job):
        self.cluster.call("scancel", job)
        processes.eventually(lambda: not self.cluster.call("squeue", "--noheader"), 60, "the queue is empty", pause=0.2)
        self.service.await_workers([], 60)

    def start_job(self, number, trials):
        """A job that has begun to evaluate candidates."""
        fields = problems.quick(stacks.CONTRACT, trials=trials)
        job = self.service.create_job(problems.pointwise(number), **fields).name
        processes.eventually(
            lambda: self.service.client.call("CandidateService", "ListCandidates", parent=job).candidates,
            START_SECONDS, f"{job} has a candidate",
        )  # fmt: skip
        return job

    def await_success(self, job):
        ended = self.service.await_job(job, JOB_SECONDS)
        assert ended.State.Name(ended.state) == "STATE_SUCCEEDED", self.service.failures(job)
        assert ended.HasField("best_speedup")


@needs_slurm
def test_an_array_is_one_worker_for_each_gpu_and_a_job_ends(site):
    # A problem that loaded cores soon have done.
    problem = site.service.write("small.py", problems.pointwise(0))
    small = {"$HOME/mtmc/current/share/mtmc/examples/scaled_softmax.py": str(problem), "--trials 4": "--trials 1"}
    commands = documented.replaced(documented.block("slurm", "sbatch --array"), site.names(small))
    submit, rest = commands.split("\n", 1)
    job = site.sh(submit).split()[-1]
    site.service.await_workers([f"workers/slurm-ci-{job}-{number}" for number in range(4)], START_SECONDS)
    seen = {re.search(r" on (n[12]), GPU ([01]), run 1$", site.output(job, n), re.M).groups() for n in range(4)}
    assert seen == {("n1", "0"), ("n1", "1"), ("n2", "0"), ("n2", "1")}
    shown = site.sh('export PATH="$HOME/mtmc/current/bin:$PATH"\n' + rest)
    assert f"slurm-ci-{job}-3" in shown and "ended by trials" in shown
    site.cancel(job)
    ends = [site.output(job, n) for n in range(4)]
    assert all("ended with code" in text and "back into the queue" not in text for text in ends)
    assert list((site.home / "scratch").iterdir()) == []


@needs_slurm
def test_a_warned_worker_finishes_its_lease_and_comes_back(site):
    job, names = site.submit("--array=0-0")
    losses = site.service.losses()
    work = site.start_job(1, trials=6)
    site.cluster.call("scancel", "--batch", "--signal=TERM", f"{job}_0")
    site.await_output(job, 0, "drained, back into the queue")
    site.await_output(job, 0, "run 2\n")
    site.service.await_workers(names, START_SECONDS)
    site.await_success(work)
    assert site.service.losses() == losses, "the lease was lost with the worker"
    site.cancel(job)


@needs_slurm
def test_the_warning_comes_before_the_time_limit(site):
    # Slurm looks at limits every half minute.
    job, _ = site.submit("--array=0-0", "--time=3", "--signal=B:TERM@150")
    site.await_output(job, 0, "told to end")
    site.await_output(job, 0, "run 2\n")
    site.cancel(job)


@needs_slurm
def test_preemption_costs_a_job_nothing_but_time(site):
    job, names = site.submit("--array=0-1")
    losses = site.service.losses()
    work = site.start_job(2, trials=8)
    gate = site.home / "gate"
    urgent = site.cluster.call(
        "sbatch", "--parsable", "--partition=urgent", "--nodes=2", "--gres=gpu:2", "--output=/dev/null",
        f"--wrap=until test -e {gate}; do sleep 0.1; done",
    )  # fmt: skip
    processes.eventually(
        lambda: "RUNNING" in state_of(site, urgent), START_SECONDS, "the urgent job runs", pause=0.2
    )
    site.service.await_workers([], 60)
    state = site.service.job(work)
    assert state.State.Name(state.state) in ("STATE_PENDING", "STATE_RUNNING"), "the job ended without workers"
    gate.touch()
    site.service.await_workers(names, START_SECONDS)
    site.await_success(work)
    assert site.service.losses() == losses, "a lease was lost with a worker"
    # Each once: to requeue one element is not to requeue the array.
    assert all("run 2\n" in site.output(job, number) for number in range(2))
    assert all("run 3\n" not in site.output(job, number) for number in range(2))
    site.cancel(job)


def state_of(site, job):
    return site.cluster.call("squeue", "--noheader", f"--jobs={job}", "--format=%T", check=False)


@needs_slurm
def test_a_worker_that_is_killed_is_made_up_for(site):
    job, names = site.submit("--array=0-1")
    work = site.start_job(3, trials=6)
    site.cluster.call("scontrol", "requeue", f"{job}_0")
    site.await_output(job, 0, "run 2\n")
    site.service.await_workers(names, START_SECONDS)
    site.await_success(work)
    site.cancel(job)


def run_script(*arguments, **variables):
    return subprocess.run(
        [SCRIPT, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False,
        env={"PATH": os.environ["PATH"], "SLURMD_NODENAME": "n1", **variables},
    )  # fmt: skip


def test_outside_of_slurm_the_script_says_what_to_do():
    done = run_script("settings")
    assert (done.returncode, done.stdout) == (2, "")
    assert "not a job of Slurm; start it with sbatch" in done.stderr


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (None, "cannot be read on n1"),
        ("MTMC_RELEASE=/nowhere\n", "does not set MTMC_PYTHON"),
        ("MTMC_RELEASE=/nowhere\nMTMC_PYTHON=p\nMTMC_ENDPOINT=h:1\n", "/nowhere/bin/mtmc-worker is not there on n1"),
    ],
)
def test_settings_at_fault_are_refused(tmp_path, text, wanted):
    settings = tmp_path / "settings"
    if text is not None:
        settings.write_text(text)
    done = run_script(settings, SLURM_JOB_ID="7")
    assert done.returncode == 2
    assert wanted in done.stderr
