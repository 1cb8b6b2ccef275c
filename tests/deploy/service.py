# SPDX-License-Identifier: Apache-2.0
"""Coordinator, policy service and gateway without a worker, on free ports."""

import re
import urllib.request

import processes
import stack as stacks


class Service(stacks.Daemons):
    """A context manager, in which workers may come and go."""

    def launch(self):
        listen = ("--listen", "127.0.0.1:0")
        policy = self.add("mtmc-policyd", *listen)
        gateway = self.add("mtmc-gateway", *listen)
        self.endpoint = self.add(
            "mtmc-coordinator", *listen, "--policy", policy, "--gateway", gateway,
            "--data-dir", self.folder / "store",
        )  # fmt: skip

    def workers(self):
        """State of each worker that is known, by name."""
        listed = self.client.call("WorkerService", "ListWorkers", page_size=100).workers
        return {
            worker.name: worker.State.Name(worker.state).removeprefix("STATE_") for worker in listed
        }

    def await_workers(self, names, seconds):
        """Waits until just these workers are there and can take work."""

        def look():
            ready = {name for name, state in self.workers().items() if state in ("IDLE", "RUNNING")}
            return ready == set(names)

        processes.eventually(look, seconds, f"{names} serve: {self.workers()}", pause=0.2)

    def metric(self, name):
        """Sum over the series of a metric of the coordinator; 0 without one."""
        with urllib.request.urlopen(f"http://{self.http['mtmc-coordinator']}/metrics", timeout=30) as reply:
            text = reply.read().decode()
        values = re.findall(rf"^{name}(?:\{{.*\}})? (\S+)$", text, re.M)
        return sum(map(float, values))

    def losses(self):
        """Leases that were lost with their worker so far."""
        return self.metric("mtmc_worker_lost_total")
