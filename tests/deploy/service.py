# SPDX-License-Identifier: Apache-2.0
"""Coordinator, policy service and gateway without a worker, on free ports."""

import re
import urllib.request

import processes
import stack as stacks


class Service(stacks.Stack):
    """A context manager, in which workers may come and go."""

    def __init__(self, folder):
        super().__init__(folder)
        self._daemons = []
        self.http = {}

    def _serve(self, program, *flags):
        daemon, ready = self.serve(program, "--listen", "127.0.0.1:0", *flags)
        self._daemons.append(daemon)
        self.http[program] = ready["http"]
        return ready["grpc"]

    def __enter__(self):
        try:
            policy = self._serve("mtmc-policyd")
            gateway = self._serve("mtmc-gateway")
            self.endpoint = self._serve(
                "mtmc-coordinator", "--policy", policy, "--gateway", gateway,
                "--data-dir", self.folder / "store",
            )  # fmt: skip
        except BaseException:
            self._stop()
            raise
        self.client = stacks.contract.Client(stacks.CONTRACT, self.endpoint)
        return self

    def __exit__(self, *_):
        self.client.close()
        self._stop()

    def _stop(self):
        for daemon in reversed(self._daemons):
            stacks.stop(daemon)

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
