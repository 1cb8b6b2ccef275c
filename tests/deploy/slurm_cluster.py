# SPDX-License-Identifier: Apache-2.0
"""A real Slurm on this machine alone: two nodes of two GPUs each, which are files."""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess

import clusters
import processes

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scontrol", "scancel")
START_SECONDS = 60
# From the end of a job to its next run; Slurm waits two minutes where nobody says less.
REQUEUE_SECONDS = 5

CONFIG = """
ClusterName=ci
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock,cred_expire={requeue}
StateSaveLocation={folder}/ctld
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdParameters=config_overrides
SlurmctldParameters=preempt_send_user_signal
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=2,bf_interval=2,sched_min_interval=500000
KillWait=5
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
GresTypes=gpu
NodeName=n[1-2] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{ports[1]}-{ports[2]}] CPUs=2 RealMemory=4000 Gres=gpu:2 State=UNKNOWN
PartitionName=fleet Nodes=ALL Default=YES MaxTime=60 PriorityTier=1 GraceTime=120 State=UP
PartitionName=urgent Nodes=ALL MaxTime=60 PriorityTier=2 PreemptMode=OFF State=UP
"""


def missing():
    """What keeps a cluster from being made here; empty when nothing does."""
    if reason := clusters.not_chosen("slurm", "scripts/slurm-test"):
        return reason
    absent = [name for name in PROGRAMS if _program(name) is None]
    return f"{', '.join(absent)} cannot be found; scripts/slurm-test installs Slurm" if absent else ""


def _program(name):
    # Where daemons lie is not in the path of everybody.
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


def _free_ports(count):
    """Ports in a row that nobody has."""
    for first in range(21000, 29000, 10):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return list(range(first, first + count))
    raise AssertionError("there are no free ports")


class Cluster:
    """munged, slurmctld and two slurmd, all files below `folder`. A context manager."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self._daemons = []

    def _configure(self):
        config = CONFIG.format(
            host=socket.gethostname().split(".")[0], ports=_free_ports(3), folder=self.folder,
            user=subprocess.check_output(["id", "-un"], text=True).strip(), requeue=REQUEUE_SECONDS,
        )  # fmt: skip
        (self.folder / "slurm.conf").write_text(config)
        gpus = []
        for number in range(2):
            gpus.append(self.folder / f"nvidia{number}")
            gpus[-1].symlink_to("/dev/null")
        (self.folder / "gres.conf").write_text(
            "AutoDetect=off\n" + "".join(f"Name=gpu File={path}\n" for path in gpus)
        )
        is_v2 = pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists()
        (self.folder / "cgroup.conf").write_text(f"CgroupPlugin=cgroup/v{2 if is_v2 else 1}\n")
        for name in ("ctld", "spool-n1", "spool-n2"):
            (self.folder / name).mkdir()

    def _start(self, name, *flags):
        with open(self.folder / f"{name}.out", "ab") as output:
            daemon = subprocess.Popen(
                [_program(name), *map(str, flags)],
                env=self.environment(), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )  # fmt: skip
        self._daemons.append(daemon)
        return daemon

    def __enter__(self):
        self.folder.mkdir()
        self._configure()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        try:
            self._start(
                "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.sock",
                f"--log-file={self.folder}/munged.log", f"--pid-file={self.folder}/munged.pid",
                f"--seed-file={self.folder}/munged.seed",
            )  # fmt: skip
            processes.eventually((self.folder / "munge.sock").exists, START_SECONDS, "munged serves")
            self._start("slurmctld", "-D")
            for node in ("n1", "n2"):
                self._start("slurmd", "-D", "-N", node)
            processes.eventually(self._is_up, START_SECONDS, f"both nodes are idle: {self.logs()}", pause=0.5)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_):
        self._stop()

    def _is_up(self):
        dead = [daemon.args[0] for daemon in self._daemons if daemon.poll() is not None]
        assert not dead, f"{dead} ended: {self.logs()}"
        nodes = self.call("sinfo", "--noheader", "--Node", "--format=%N %T", check=False)
        return sorted(set(nodes.split("\n")) - {""}) == ["n1 idle", "n2 idle"]

    def _stop(self):
        if len(self._daemons) == 4:
            self.cancel_all()
        for daemon in reversed(self._daemons):
            daemon.terminate()
            try:
                daemon.wait(START_SECONDS)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def environment(self):
        folders = os.environ["PATH"] + ":/usr/sbin:/sbin"
        return {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": folders}

    def call(self, *command, check=True):
        """What a command of Slurm prints."""
        done = subprocess.run(
            [*map(str, command)], env=self.environment(), cwd=self.folder,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert not check or done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout.strip()

    def cancel_all(self):
        """Ends all jobs of the cluster, which is then empty."""
        self.call("scancel", f"--user={os.getuid()}", check=False)
        processes.eventually(
            lambda: not self.call("squeue", "--noheader", check=False), START_SECONDS, "all jobs end", pause=0.2
        )

    def states(self, job):
        """State of each job of an array by its number in it."""
        lines = self.call("squeue", "--noheader", "--array", f"--jobs={job}", "--format=%K %T").splitlines()
        return {int(number): state for number, state in map(str.split, lines)}

    def logs(self):
        return "\n".join(path.read_text(errors="replace")[-3000:] for path in sorted(self.folder.glob("*.log")))
