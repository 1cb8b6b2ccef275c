# SPDX-License-Identifier: Apache-2.0
"""The command line and the service as scripts see them: JSON shapes, exit codes,
and the conventions of every call."""

import json
import os
import signal
import urllib.request

import contract
import grpc
import problems
import processes
import pytest
import stack as stacks

EXIT_USAGE = 2
EXIT_UNAVAILABLE = 7
EXIT_WAIT_TIMEOUT = 124
EXIT_INTERRUPTED = 130

JOB_SECONDS = 180
PROJECT = "projects/default"


def job_state(job):
    return stacks.CONTRACT.Job.State.Name(job.state)


@pytest.fixture(scope="module")
def problem(stack):
    return stack.write("chain.py", problems.pointwise())


@pytest.fixture(scope="module")
def job(stack):
    """A job that has ended, with its candidates."""
    created = stack.create_job(problems.pointwise(), "chain", **problems.quick(stacks.CONTRACT))
    ended = stack.await_job(created.name, JOB_SECONDS)
    assert job_state(ended) == "STATE_SUCCEEDED", ended.failure
    return ended


def long_job(stack, number):
    options = problems.quick(stacks.CONTRACT, trials=300, strategy="random", seed=number)
    return stack.create_job(problems.pointwise(number), "long", **options)


# Commands.


def test_optimize_prints_the_job_as_json_and_writes_the_winner(stack, problem):
    winner = stack.folder / "winner.py"
    done = stack.run("--output", "json", "optimize", problem, "--trials", "2", "--file-out", winner)
    assert done.returncode in (0, 4), done.stderr
    job = json.loads(done.stdout)
    assert job["state"] == "STATE_SUCCEEDED"
    assert job["problem"]["display_name"] == "chain"
    assert job["budget"]["max_trials"] == 2
    assert job["best_speedup"] > 0 and job["best_candidate"].startswith(job["name"])
    assert "class ModelNew" in winner.read_text()
    assert (done.returncode == 0) == (job["best_speedup"] > 1)


def test_a_table_has_no_escapes_when_it_is_not_for_a_terminal(stack, job):
    for command in (("jobs", "list"), ("candidates", "list", job.name), ("workers", "list")):
        done = stack.run(*command)
        assert done.returncode == 0, done.stderr
        assert "\033" not in done.stdout and done.stdout.count("\n") > 1


def test_jobs_are_listed_and_shown_as_json(stack, job):
    listed = stack.json("jobs", "list")["jobs"]
    assert job.name in [entry["name"] for entry in listed]
    shown = stack.json("jobs", "get", job.name.rpartition("/")[2])
    assert shown["name"] == job.name
    assert shown["budget_use"]["trials"] == job.budget_use.trials
    assert shown["end_reason"] == stacks.CONTRACT.Job.EndReason.Name(job.end_reason)


def test_a_job_that_has_ended_can_still_be_watched(stack, job):
    watched = stack.json("jobs", "watch", job.name)
    assert watched["state"] == "STATE_SUCCEEDED"


def test_candidates_are_listed_shown_compared_and_exported(stack, job):
    listed = stack.json("candidates", "list", job.name)["candidates"]
    assert [c.get("trial", 0) for c in listed] == list(range(len(listed)))
    best = stack.json("candidates", "show", job.name)
    assert best["name"] == job.best_candidate
    assert best["evaluation"]["measurement"]["median_seconds"] > 0
    last = f"{job.name}/candidates/c{len(listed) - 1}"
    assert stack.json("candidates", "show", last)["name"] == last
    diff = stack.run("candidates", "diff", last, listed[0]["name"])
    assert diff.returncode == 0 and diff.stdout.startswith("--- "), diff.stderr
    exported = stack.run("export", job.name)
    assert exported.returncode == 0 and "class ModelNew" in exported.stdout, exported.stderr
    compile(exported.stdout, "exported", "exec")


def test_create_with_wait_follows_the_job_and_dry_run_creates_nothing(stack, problem):
    waited = stack.json("jobs", "create", problem, "--trials", "1", "--wait")
    assert waited["state"] == "STATE_SUCCEEDED"
    before = job_names(stack)
    assert stack.run("jobs", "create", problem, "--dry-run").returncode == 0
    assert job_names(stack) == before


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("jobs", "get", "no-such-job"), "JOB_NOT_FOUND"),
        (("jobs", "watch", "no-such-job"), "JOB_NOT_FOUND"),
        (("candidates", "show", "no-such-job/c1"), "_NOT_FOUND"),
        (("workers", "drain", "no-such-worker"), "WORKER_NOT_FOUND"),
        (("jobs", "create", "/no/such/file.py"), "FILE_NOT_FOUND"),
        (("frobnicate",), ""),
        (("jobs",), ""),
        (("--output", "xml", "version"), "output"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else None,
)
def test_a_wrong_command_is_a_usage_error(stack, command, words):
    done = stack.run(*command)
    assert done.returncode == EXIT_USAGE, done
    assert words in done.stderr and done.stdout == ""


def test_every_command_explains_itself(stack):
    for command in ((), ("optimize",), ("up",), ("jobs",), ("candidates",), ("export",), ("doctor",)):
        done = stack.run(*command, "--help")
        assert done.returncode == 0 and "Usage" in done.stdout, command


def test_ctrl_c_detaches_and_the_job_goes_on(stack):
    job = long_job(stack, 501)
    watch = stack.start("jobs", "watch", job.name, log="watch.log")
    processes.eventually(lambda: "trial" in stack.log("watch"), JOB_SECONDS, "the watch shows a trial")
    watch.send_signal(signal.SIGINT)
    assert watch.wait(20) == EXIT_INTERRUPTED
    assert f"mtmc jobs watch {job.name.rpartition('/')[2]}" in stack.log("watch")
    trials = stack.job(job.name).budget_use.trials

    def goes_on():
        now = stack.job(job.name)
        return now.budget_use.trials > trials or job_state(now) == "STATE_SUCCEEDED"

    processes.eventually(goes_on, JOB_SECONDS, "the job goes on")
    assert stack.run("jobs", "cancel", job.name).returncode == 0
    assert job_state(stack.await_job(job.name, 60)) == "STATE_CANCELLED"


def test_a_wait_that_takes_too_long_ends_and_the_job_goes_on(stack):
    job = long_job(stack, 502)
    done = stack.run("jobs", "watch", job.name, "--timeout", "1")
    assert done.returncode == EXIT_WAIT_TIMEOUT, done
    assert job_state(stack.job(job.name)) in ("STATE_PENDING", "STATE_RUNNING")
    stack.client.call("JobService", "CancelJob", name=job.name)
    stack.await_job(job.name, 60)


def test_jobs_are_paused_resumed_and_deleted_by_name(stack):
    # No worker has this name, so that the job waits for as long as it is looked at.
    nobody = stacks.CONTRACT.WorkerSelector(worker="workers/nobody")
    job = stack.create_job(problems.pointwise(504), worker_selector=nobody)
    name = job.name.rpartition("/")[2]
    assert stack.json("jobs", "pause", name)["state"] == "STATE_PAUSED"
    assert stack.json("jobs", "get", name)["state"] == "STATE_PAUSED"
    assert stack.json("jobs", "resume", name)["state"] == "STATE_PENDING"
    refused = stack.run("jobs", "delete", name)
    assert refused.returncode == EXIT_UNAVAILABLE and "JOB_NOT_ENDED" in refused.stderr
    assert stack.json("jobs", "pause", name)["state"] == "STATE_PAUSED"
    assert stack.run("jobs", "cancel", name).returncode == 0
    stack.await_job(job.name, 60)
    assert stack.run("jobs", "delete", name).returncode == 0
    with pytest.raises(contract.CallError) as gone:
        stack.job(job.name)
    assert gone.value.reason == "JOB_NOT_FOUND"


def test_jobs_are_listed_in_the_order_that_is_asked_for(stack, job):
    listed = stack.client.call("JobService", "ListJobs", parent=PROJECT, page_size=500,
                               order_by="create_time")  # fmt: skip
    times = [entry.create_time.ToNanoseconds() for entry in listed.jobs]
    assert times == sorted(times)
    best = stack.json("jobs", "list", "--order-by", "best_speedup desc")["jobs"]
    speedups = [entry.get("best_speedup", 0) for entry in best]
    assert speedups == sorted(speedups, reverse=True) and speedups[0] > 0
    refused = stack.run("jobs", "list", "--order-by", "name")
    assert refused.returncode == EXIT_USAGE and "INVALID_ORDER" in refused.stderr


def test_a_drained_worker_takes_nothing_new_until_it_is_undrained(stack):
    worker = stack.json("workers", "list")["workers"][0]["name"]
    assert stack.run("workers", "drain", worker).returncode == 0
    draining = stack.client.call("WorkerService", "GetWorker", name=worker).worker
    assert draining.State.Name(draining.state) == "STATE_DRAINING"
    job = stack.create_job(problems.pointwise(503), **problems.quick(stacks.CONTRACT, trials=1))
    done = stack.run("jobs", "watch", job.name, "--timeout", "3")
    assert done.returncode == EXIT_WAIT_TIMEOUT, "a drained worker took a job"
    assert stack.run("workers", "drain", worker, "--undo").returncode == 0
    assert job_state(stack.await_job(job.name, JOB_SECONDS)) == "STATE_SUCCEEDED"


def test_doctor_says_what_the_host_has_and_how_to_get_the_rest(stack):
    report = stack.json("doctor")
    checks = {check["name"]: check for check in report["checks"]}
    assert checks["python"]["state"] == "present"
    for check in checks.values():
        assert check["state"] == "present" or check.get("remedy"), check
    assert stack.run("doctor").returncode == 0
    helpless = stack.run("doctor", OCL_ICD_VENDORS="/nonexistent")
    if not os.path.exists("/dev/nvidia0"):
        assert helpless.returncode == EXIT_UNAVAILABLE


def test_doctor_looks_for_the_coordinator_that_is_named(stack):
    checks = {check["name"]: check for check in stack.json("--endpoint", stack.endpoint, "doctor")["checks"]}
    assert checks["coordinator"]["detail"] == f"{stack.endpoint} answers"
    # Port 1 is nobody's.
    nobody = stack.run("--endpoint", "127.0.0.1:1", "doctor")
    assert nobody.returncode == EXIT_UNAVAILABLE
    assert "COORDINATOR_UNREACHABLE" in nobody.stdout and "the coordinator is not reached from here" in nobody.stdout


def test_every_program_knows_its_version(stack):
    version = stack.json("version")["version"]
    for program in ("coordinator", "policyd", "gateway", "worker"):
        done = stack.run("--version", program=f"mtmc-{program}")
        assert done.returncode == 0 and done.stdout.split() == [f"mtmc-{program}", version]


# Calls.


def test_a_repeated_request_id_creates_one_job(stack):
    request_id = contract.new_request_id()
    options = problems.quick(stacks.CONTRACT, trials=1)
    first = stack.create_job(problems.pointwise(), request_id=request_id, **options)
    second = stack.create_job(problems.pointwise(), request_id=request_id, **options)
    assert first.name == second.name and first.uid == second.uid
    other = stack.create_job(problems.pointwise(), **options)
    assert other.name != first.name


def job_names(stack):
    """Names only: an earlier test's job may still go on."""
    return [job["name"] for job in stack.json("jobs", "list").get("jobs", [])]


def test_validate_only_checks_everything_and_creates_nothing(stack):
    before = job_names(stack)
    fields = {"parent": PROJECT, "validate_only": True}
    source = stack.upload(problems.pointwise())
    good = stacks.CONTRACT.Job(problem=stacks.CONTRACT.Problem(source=source))
    resolved = stack.client.call("JobService", "CreateJob", job=good, **fields).job
    assert resolved.budget.max_trials > 0 and resolved.search.mtmc.policy == "rules"
    bad = stacks.CONTRACT.Job(
        problem=good.problem,
        budget=stacks.CONTRACT.Budget(max_trials=-1),
        search=stacks.CONTRACT.SearchOptions(mtmc={"policy": "guess"}),
    )
    with pytest.raises(contract.CallError) as refused:
        stack.client.call("JobService", "CreateJob", job=bad, **fields)
    assert refused.value.code == grpc.StatusCode.INVALID_ARGUMENT
    assert refused.value.reason == "INVALID_JOB"
    assert "max_trials" in refused.value.message and "mtmc.policy" in refused.value.message
    assert job_names(stack) == before


def test_pages_hold_every_job_once_newest_first(stack, job):
    def page(token, size=2):
        return stack.client.call("JobService", "ListJobs", parent=PROJECT, page_size=size,
                                 page_token=token)  # fmt: skip

    whole = page("", 500)
    names, token = [], ""
    while True:
        part = page(token)
        assert len(part.jobs) <= 2
        names += [entry.name for entry in part.jobs]
        token = part.next_page_token
        if not token:
            break
    assert names == [entry.name for entry in whole.jobs]
    times = [entry.create_time.ToNanoseconds() for entry in whole.jobs]
    assert times == sorted(times, reverse=True)
    with pytest.raises(contract.CallError) as refused:
        page("not-a-token")
    assert refused.value.reason == "INVALID_PAGE_TOKEN"


def test_a_watch_from_a_cursor_sees_the_rest(stack, job):
    log = stack.event_log(job.name)
    assert [event.sequence for event in log] == list(range(1, len(log) + 1))
    assert list(stack.client.events(job.name, cursor=3)) == log[3:]
    assert list(stack.client.events(job.name, cursor=len(log))) == []


def test_daemons_serve_health_and_reflection(stack):
    raw = {"request_serializer": None, "response_deserializer": None}
    check = stack.client.channel.unary_unary("/grpc.health.v1.Health/Check", **raw)
    assert check(b"", timeout=10) == b"\x08\x01"  # SERVING
    reflect = stack.client.channel.stream_stream(
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", **raw
    )
    answer = next(iter(reflect(iter([b"\x3a\x00"]), timeout=10)))  # list_services
    for service in ("Job", "Candidate", "Artifact", "Record", "Worker"):
        assert f"mtmc.v1.{service}Service".encode() in answer


# Metrics.

METRICS = {
    "mtmc-coordinator": {
        "mtmc_build_info", "mtmc_jobs", "mtmc_jobs_finished_total", "mtmc_queue_wait_seconds",
        "mtmc_evaluations_total", "mtmc_evaluation_phase_seconds", "mtmc_workers",
        "mtmc_worker_lease_expired_total", "mtmc_policy_decisions_total",
        "mtmc_policy_call_seconds", "mtmc_policy_fallback_total", "mtmc_cache_requests_total"},
    "mtmc-policyd": {"mtmc_build_info", "mtmc_policy_inference_seconds"},
    "mtmc-gateway": {"mtmc_build_info"},
    "mtmc-worker": {"mtmc_build_info", "mtmc_worker_evaluations_total", "mtmc_gpu_busy_seconds_total"},
}  # fmt: skip


def fetch(url):
    with urllib.request.urlopen(url, timeout=10) as response:
        return response.status, response.read().decode()


@pytest.mark.parametrize("daemon", METRICS)
def test_a_daemon_serves_metrics_and_probes(stack, job, daemon):
    base = stack.http_endpoints()[daemon]
    assert fetch(f"{base}/healthz")[0] == 200
    assert fetch(f"{base}/readyz")[0] == 200
    status, text = fetch(f"{base}/metrics")
    assert status == 200
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert METRICS[daemon] <= names, METRICS[daemon] - names
    # A label that grows with the work would fill the monitoring.
    assert "projects/" not in text and job.name.rpartition("/")[2] not in text
