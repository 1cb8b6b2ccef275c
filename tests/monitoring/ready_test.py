# SPDX-License-Identifier: Apache-2.0
"""/readyz tells whether a daemon can serve, /healthz whether it lives."""

import pathlib
import signal

import live
import processes
import pytest
import stack as stacks


@pytest.fixture
def host(tmp_path):
    return stacks.Host(tmp_path)


def test_a_coordinator_does_without_policy_and_gateway(host):
    daemon, ready = host.serve(
        "mtmc-coordinator", "--listen", "127.0.0.1:0", "--data-dir", host.folder / "store",
        "--policy", "127.0.0.1:9", "--gateway", "127.0.0.1:9",
    )  # fmt: skip
    code, text = live.get(ready["http"], "/readyz")
    assert code == 200
    assert "store: ok\n" in text and "loop: ok\n" in text
    assert "gateway: no connection to 127.0.0.1:9 (can do without)\n" in text
    metrics = live.get(ready["http"], "/metrics")[1]
    assert 'mtmc_dependency_up{dependency="gateway"} 0' in metrics
    assert 'mtmc_dependency_up{dependency="store"} 1' in metrics
    assert stacks.stop(daemon) == 0


def test_a_coordinator_whose_store_is_broken_is_alive_and_not_ready(host):
    daemon, ready = host.serve(
        "mtmc-coordinator", "--listen", "127.0.0.1:0", "--data-dir", host.folder / "store",
        "--policy", "127.0.0.1:9", "--gateway", "127.0.0.1:9",
    )  # fmt: skip
    assert live.get(ready["http"], "/readyz")[0] == 200
    for path in pathlib.Path(host.folder / "store").glob("mtmc.db*"):
        path.write_bytes(b"this is no database" * 1000)
    code, text = live.get(ready["http"], "/readyz")
    assert code == 503 and text.startswith("not ready\n"), text
    assert "store: ok" not in text and "loop: ok\n" in text
    assert live.get(ready["http"], "/healthz")[0] == 200
    daemon.send_signal(signal.SIGKILL)
    daemon.wait()


def test_a_worker_without_a_coordinator_is_alive_and_not_ready(host):
    daemon, ready = host.serve(
        "mtmc-worker", "--coordinator", "127.0.0.1:9", "--scratch", host.folder / "scratch"
    )
    code, text = live.get(ready["http"], "/readyz")
    assert code == 503
    assert "device: ok\n" in text and "coordinator: no connection to 127.0.0.1:9\n" in text
    assert live.get(ready["http"], "/healthz") == (200, "ok\n")
    stacks.stop(daemon)
    processes.eventually(lambda: not processes.descendants(), 20, "its children end")
