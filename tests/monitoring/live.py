# SPDX-License-Identifier: Apache-2.0
"""The real daemons, with a language model, under a real Prometheus."""

import json
import math
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import deployed
import processes
import stack as stacks

# What Grafana puts in place of its variables: a window as long as the test, and all values.
WINDOW = "20m"


def get(address, path):
    """Code and text of an answer, whatever the code."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=30) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class Service(stacks.Daemons):
    """Coordinator, policy service, gateway with the language model at `base_url`, and
    a worker. A context manager."""

    def __init__(self, folder, base_url):
        super().__init__(folder)
        self._base_url = base_url

    def launch(self):
        listen = ("--listen", "127.0.0.1:0")
        policy = self.add("mtmc-policyd", *listen)
        gateway = self.add(
            "mtmc-gateway", *listen, "--base-url", self._base_url, "--model", "fake",
            "--usd-per-million-input", "3", "--usd-per-million-output", "15", OPENAI_API_KEY="sk-none",
        )  # fmt: skip
        self.endpoint = self.add(
            "mtmc-coordinator", *listen, "--policy", policy, "--gateway", gateway,
            "--data-dir", self.folder / "store",
        )  # fmt: skip
        self.add("mtmc-worker", "--coordinator", self.endpoint, "--scratch", self.folder / "scratch")


class Prometheus:
    """A server that scrapes `targets` each second, with our rules. A context manager."""

    def __init__(self, folder, targets):
        self._folder = folder
        folder.mkdir()
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(deployed.PROMETHEUS / "rules/*.yml")],
            "scrape_configs": [{"job_name": "mtmc", "static_configs": [{"targets": sorted(targets)}]}],
        }
        (folder / "prometheus.yml").write_text(json.dumps(config))

    def __enter__(self):
        # Port 0 would not be told; a port that is free now is taken soon enough.
        for attempt in range(5):
            port = free_port()
            self.address = f"127.0.0.1:{port}"
            with open(self._folder / "log", "ab") as log:
                self._process = subprocess.Popen(
                    [deployed.PROMETHEUS_PROGRAM, f"--config.file={self._folder}/prometheus.yml",
                     f"--storage.tsdb.path={self._folder}/data", f"--web.listen-address={self.address}"],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                )  # fmt: skip
            if processes.eventually(self._is_up_or_dead, 60, "Prometheus answers") == "up":
                return self
        raise AssertionError((self._folder / "log").read_text())

    def _is_up_or_dead(self):
        if self._process.poll() is not None:
            return "dead"
        try:
            return "up" if get(self.address, "/-/ready")[0] == 200 else None
        except OSError:
            return None

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()

    def query(self, expression):
        """Values by labels, without those that are no number."""
        text = urllib.parse.quote(concrete(expression))
        code, body = get(self.address, f"/api/v1/query?query={text}")
        answer = json.loads(body)
        assert code == 200 and answer["status"] == "success", f"{expression}: {body}"
        assert answer["data"]["resultType"] == "vector", expression
        values = {json.dumps(row["metric"], sort_keys=True): float(row["value"][1]) for row in answer["data"]["result"]}
        return {labels: value for labels, value in values.items() if math.isfinite(value)}

    def await_scrape(self):
        """Until it has read from each daemon what that says now."""
        now = time.time()
        processes.eventually(
            lambda: min(self.query('timestamp(up{job="mtmc"})').values(), default=0) > now, 60, "all are scraped", pause=0.2
        )

    def alerts(self):
        """Names of the alerts that are raised."""
        found = json.loads(get(self.address, "/api/v1/alerts")[1])["data"]["alerts"]
        return {alert["labels"]["alertname"] for alert in found}


def concrete(expression):
    """A query as Grafana sends it."""
    for window in ("$__rate_interval", "$__range"):
        expression = expression.replace(window, WINDOW)
    for name in ("project", "gpu_product", "template", "model"):
        expression = expression.replace(f"${name}", ".*")
    return expression


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
