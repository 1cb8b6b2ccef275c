# SPDX-License-Identifier: Apache-2.0
"""Hosts on which something is missing, taken or full: one message that says what
to do, the documented exit code, and nothing left behind."""

import hashlib
import os
import socket

import contract
import grpc
import problems
import processes
import pytest
import stack as stacks

EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_UNAVAILABLE = 7
# Of daemons.
EXIT_DEPENDENCY = 69

has_gpu = os.path.exists("/dev/nvidia0")


def up(host, *flags, **changes):
    return host.run("up", "--listen", "127.0.0.1:0", "--data-dir", host.folder / "store", *flags, **changes)


def test_a_device_that_is_not_there(host):
    done = up(host, "--device", "opencl:7")
    assert done.returncode == EXIT_UNAVAILABLE, done
    assert "mtmc-worker" in done.stderr and "7" in done.stderr
    assert "opencl" in done.stderr.lower()


def test_a_host_without_opencl(host):
    done = up(host, "--device", "opencl:0", OCL_ICD_VENDORS="/nonexistent")
    assert done.returncode == EXIT_UNAVAILABLE, done
    assert "pocl" in done.stderr.lower(), done.stderr


@pytest.mark.skipif(has_gpu, reason="this host has an NVIDIA driver")
def test_a_host_without_a_cuda_driver(host):
    done = up(host, "--device", "cuda:0")
    assert done.returncode == EXIT_UNAVAILABLE, done
    assert "driver" in done.stderr.lower(), done.stderr


def test_a_python_without_pytorch(host):
    bare = host.write("python", '#!/bin/sh\nexec /usr/bin/python3 -I -S "$@"\n')
    bare.chmod(0o755)
    done = up(host, "--python", bare)
    assert done.returncode == EXIT_UNAVAILABLE, done
    assert "MTMC_PYTHON" in done.stderr or "scripts/setup" in done.stderr, done.stderr


def test_an_unknown_device_is_a_usage_error(host):
    done = host.run("--device", "tpu:0", "--http", "", program="mtmc-worker")
    assert done.returncode == EXIT_USAGE
    assert "auto, opencl:N or cuda:N" in done.stderr + done.stdout


def test_a_port_that_is_taken(host):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = host.run("up", "--listen", address, "--data-dir", host.folder / "store")
        assert done.returncode == EXIT_UNAVAILABLE, done
        assert "PORT_TAKEN" in done.stderr and address in done.stderr
        for listen, http in ((address, "127.0.0.1:0"), ("127.0.0.1:0", address)):
            done = host.run(
                "--data-dir", host.folder / "other", "--listen", listen, "--http", http,
                program="mtmc-coordinator",
            )  # fmt: skip
            assert done.returncode == EXIT_DEPENDENCY, done
            assert "PORT_TAKEN" in done.stdout + done.stderr


def test_no_coordinator(host):
    for command in (("jobs", "list"), ("--endpoint", "127.0.0.1:9", "jobs", "list")):
        done = host.run(*command)
        assert done.returncode == EXIT_UNAVAILABLE, done
        assert "mtmc up" in done.stderr and "[COORDINATOR_UNREACHABLE]" in done.stderr
        assert done.stderr.count("\n") == 1 and done.stdout == ""


@pytest.fixture
def coordinator(host):
    """Starts coordinators; each is (client, endpoint)."""
    started = []

    def start(*flags):
        daemon, ready = host.serve(
            "mtmc-coordinator", "--listen", "127.0.0.1:0", "--data-dir", host.folder / "store", *flags
        )
        client = contract.Client(stacks.CONTRACT, ready["grpc"])
        started.append((daemon, client))
        return client, ready["grpc"], daemon

    yield start
    for daemon, client in started:
        client.close()
        stacks.stop(daemon)


def test_a_store_that_another_coordinator_uses(host, coordinator):
    _, _, first = coordinator()
    done = host.run(
        "--data-dir", host.folder / "store", "--listen", "127.0.0.1:0", "--http", "",
        program="mtmc-coordinator",
    )  # fmt: skip
    shown = done.stdout + done.stderr
    assert done.returncode == EXIT_ERROR, done
    assert "STORE_LOCKED" in shown and str(first.pid) in shown and "--data-dir" in shown
    stack = up(host)
    assert stack.returncode == EXIT_UNAVAILABLE
    assert "STORE_LOCKED" in stack.stderr


@pytest.mark.parametrize("limit", ["--max-artifact-bytes", "--max-database-bytes"])
def test_a_full_disk_refuses_new_work_and_keeps_the_old(host, coordinator, limit):
    # Room for an empty database, and no more.
    room = {"--max-artifact-bytes": 4096, "--max-database-bytes": 262144}[limit]
    _, endpoint, daemon = coordinator(limit, str(room))
    path = host.write("problem.py", problems.pointwise() + "#" * 8192)
    created = []
    for _ in range(200):
        done = host.run("--endpoint", endpoint, "jobs", "create", path)
        if done.returncode != 0:
            break
        created.append(done.stdout.strip())
    assert done.returncode == EXIT_ERROR, done
    assert done.stderr.count("\n") == 1 and "[DISK_FULL]" in done.stderr
    assert "free" in done.stderr, done.stderr
    assert stacks.stop(daemon) == 0

    client, endpoint, _ = coordinator()
    listed = client.call("JobService", "ListJobs", parent="projects/default", page_size=500).jobs
    assert sorted(job.name.rpartition("/")[2] for job in listed) == sorted(created)
    assert host.run("--endpoint", endpoint, "jobs", "create", path).returncode == 0


def test_a_store_that_fills_up_within_a_job_holds_it_until_there_is_space(host, coordinator):
    gateway, serving = host.serve("mtmc-gateway", "--listen", "127.0.0.1:0")

    def begin(*limit):
        client, endpoint, daemon = coordinator("--gateway", serving["grpc"], *limit)
        worker, _ = host.serve("mtmc-worker", "--coordinator", endpoint, "--scratch", host.folder / "w")
        return client, endpoint, daemon, worker

    client, _, daemon, worker = begin()
    data = problems.pointwise(21).encode()
    digest = stacks.CONTRACT.Digest(sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data))
    problem = stacks.CONTRACT.Problem(display_name="chain", source=client.upload(data, digest))
    options = problems.quick(stacks.CONTRACT, trials=400, strategy="random")
    job = client.call(
        "JobService", "CreateJob", parent="projects/default",
        job=stacks.CONTRACT.Job(problem=problem, **options),
    ).job  # fmt: skip
    processes.eventually(lambda: len(recorded(client, job.name)) > 2, 120, "the job is under way")
    assert stacks.stop(worker) == 0
    assert stacks.stop(daemon) == 0
    # Room for a candidate or two more; whatever is written then may be the first to fail.
    room = (host.folder / "store" / "mtmc.db").stat().st_size + 24_576
    client, endpoint, daemon, worker = begin("--max-database-bytes", str(room))

    processes.eventually(
        lambda: "waits for the store" in host.log("mtmc-coordinator"), 180, "the store is full"
    )
    assert "DISK_FULL" in host.log("mtmc-coordinator")
    assert client.call("JobService", "GetJob", name=job.name).job.state == running()
    before = recorded(client, job.name)
    assert len(before) > 1
    assert stacks.stop(worker) == 0
    assert stacks.stop(daemon) == 0

    client, endpoint, daemon, worker = begin()
    after = processes.eventually(
        lambda: (lambda now: now if len(now) > len(before) + 2 else None)(recorded(client, job.name)),
        120, "the job goes on",
    )  # fmt: skip
    assert host.run("--endpoint", endpoint, "jobs", "cancel", job.name).returncode == 0
    # What had ended before is as it was; trials have no gaps.
    ended = {name: state for name, state in before.items() if state == "STATE_EVALUATED"}
    assert ended and ended.items() <= after.items()
    assert [name.rpartition("/c")[2] for name in after] == [str(n) for n in range(len(after))]
    for process in (worker, daemon, gateway):
        stacks.stop(process)


def running():
    return stacks.CONTRACT.Job.State.Value("STATE_RUNNING")


def recorded(client, job):
    """State of each candidate of a job, by trial."""
    state = stacks.CONTRACT.Candidate.State.Name
    listed = client.call("CandidateService", "ListCandidates", parent=job, page_size=500).candidates
    return {c.name: state(c.state) for c in sorted(listed, key=lambda c: c.trial)}


def test_a_worker_of_another_version_is_sent_away(coordinator):
    client, _, _ = coordinator()
    worker = stacks.CONTRACT.Worker(name="workers/stranger", version="99.0.0")
    state = stacks.CONTRACT.SynchronizeRequest.Idle()
    with pytest.raises(contract.CallError) as refused:
        client.call("LeaseService", "Synchronize", worker=worker, idle=state,
                    instance_id=contract.new_request_id())  # fmt: skip
    assert refused.value.code == grpc.StatusCode.FAILED_PRECONDITION
    assert refused.value.reason == "VERSION_MISMATCH"
    assert "99.0.0" in refused.value.message


def test_a_second_stack_is_told_of_the_first(tmp_path):
    with stacks.Stack(tmp_path) as stack:
        done = up(stack)
        assert done.returncode == EXIT_UNAVAILABLE
        assert "[STACK_RUNNING]" in done.stderr and stack.endpoint in done.stderr
