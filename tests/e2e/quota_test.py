# SPDX-License-Identifier: Apache-2.0
"""What a project may use: set by the command line, kept by the real daemons."""

import json
import os
import re
import signal
import urllib.request

import problems
import processes
import pytest
import stack as stacks

JOB_SECONDS = 300
EXIT_USAGE = 2


def nobody():
    """No worker has this name, so that a job waits for as long as it is looked at."""
    return stacks.CONTRACT.WorkerSelector(worker="workers/nobody")


def quota(stack):
    return stack.json("quota", "get", "default")


def metric(stack, name, kind):
    url = f"{stack.http_endpoints()['mtmc-coordinator']}/metrics"
    with urllib.request.urlopen(url, timeout=10) as response:
        text = response.read().decode()
    found = re.search(rf'^{name}{{kind="{kind}",project="default"}} (\S+)$', text, re.M)
    return found and float(found[1])


def test_jobs_beyond_the_quota_are_refused_also_after_a_crash(stack):
    assert stack.run("quota", "set", "default", "--open-jobs", "1").returncode == 0
    job = stack.create_job(problems.pointwise(601), worker_selector=nobody())
    with pytest.raises(stacks.contract.CallError) as refused:
        stack.create_job(problems.pointwise(602), worker_selector=nobody())
    assert refused.value.reason == "QUOTA_EXCEEDED"
    assert refused.value.code.name == "RESOURCE_EXHAUSTED"
    assert "1 there, 1 allowed" in str(refused.value)
    processes.eventually(lambda: metric(stack, "mtmc_quota_open_jobs", "used") == 1, 20, "it is shown")
    assert metric(stack, "mtmc_quota_open_jobs", "limit") == 1

    # `mtmc up` starts the coordinator again.
    (coordinator,) = stack.processes("mtmc-coordinator")
    os.kill(coordinator.pid, signal.SIGKILL)

    def look():
        try:
            return quota(stack)["use"]["open_jobs"] == "1"
        except AssertionError:
            return False

    processes.eventually(look, 60, "the coordinator is back")
    with pytest.raises(stacks.contract.CallError) as again:
        stack.create_job(problems.pointwise(602), worker_selector=nobody())
    assert again.value.reason == "QUOTA_EXCEEDED"
    stack.client.call("JobService", "CancelJob", name=job.name)
    stack.await_job(job.name, 60)
    assert "open_jobs" not in quota(stack).get("use", {})
    assert stack.run("quota", "set", "default", "--open-jobs", "none").returncode == 0
    assert "max_open_jobs" not in quota(stack)


def test_a_job_ends_when_its_projects_device_time_is_used_up(stack):
    first = stack.create_job(problems.pointwise(603), **problems.quick(stacks.CONTRACT, trials=1))
    done = stack.await_job(first.name, JOB_SECONDS)
    used = done.budget_use.device_time.ToMicroseconds()
    assert used > 0
    assert stacks.CONTRACT.Job.EndReason.Name(done.end_reason) == "END_REASON_TRIALS"
    before = float(quota(stack)["use"]["device_time"].rstrip("s"))
    assert before >= used * 1e-6

    # Enough for a start of an evaluation, and not for as many as the policy may propose.
    limit = before + used * 1e-6 / 4
    changed = stack.json("quota", "set", "default", "--device-time", f"{limit:.6f}s")
    asked, limit = limit, float(changed["max_device_time"].rstrip("s"))
    assert limit == pytest.approx(asked, abs=1e-5)
    job = stack.create_job(problems.pointwise(604), **problems.quick(stacks.CONTRACT, trials=20))
    ended = stack.await_job(job.name, JOB_SECONDS)

    assert stacks.CONTRACT.Job.EndReason.Name(ended.end_reason) == "END_REASON_QUOTA"
    notices = [event.notice for event in stack.event_log(job.name) if event.notice]
    # It was told, unless an evaluation was called off in its midst.
    assert ended.budget_use.trials < 20, notices
    use = quota(stack)["use"]
    assert float(use["device_time"].rstrip("s")) <= limit
    assert "reserved_device_time" not in use or use["reserved_device_time"] == "0s"
    listed = stack.run("quota", "list")
    assert listed.returncode == 0 and "default" in listed.stdout
    assert stack.run("quota", "set", "default", "--device-time", "none", "--reset-use").returncode == 0
    assert quota(stack).get("use", {}).get("device_time", "0s") == "0s"


def test_a_quota_that_is_none_is_refused_with_what_to_do(stack):
    for flags, what in (
        ((), "nothing to change"),
        (("--open-jobs", "-1"), "at least 0"),
        (("--open-jobs", "many"), "'none' for no limit"),
        (("--device-time", "3"), "90m or 2h30m"),
        (("--tokens", "1e6"), "at least 0"),
    ):
        done = stack.run("quota", "set", "default", *flags)
        assert done.returncode == EXIT_USAGE and what in done.stderr, (flags, done.stderr)
    done = stack.run("quota", "get", "No Such")
    assert "INVALID_NAME" in done.stderr


def test_rest_sets_and_shows_a_quota(stack):
    base = stack.http_endpoints()["mtmc-coordinator"]
    body = {"quota": {"max_tokens": "7"}, "update_mask": "maxTokens"}
    request = urllib.request.Request(
        f"{base}/v1/projects/other/quota:update", data=json.dumps(body).encode(), method="POST"
    )
    with urllib.request.urlopen(request, timeout=20) as response:
        assert json.load(response)["quota"]["max_tokens"] == "7"
    with urllib.request.urlopen(f"{base}/v1/projects/other/quota", timeout=20) as response:
        assert json.load(response)["quota"]["name"] == "projects/other/quota"
    with urllib.request.urlopen(f"{base}/v1/quotas", timeout=20) as response:
        names = [entry["name"] for entry in json.load(response)["quotas"]]
    assert "projects/other/quota" in names and names == sorted(names)
