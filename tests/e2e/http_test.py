# SPDX-License-Identifier: Apache-2.0
"""The service as a script without gRPC sees it: a job from upload to winner over
JSON and HTTP, and the listings' filters and views in both forms."""

import base64
import hashlib
import json
import urllib.error
import urllib.parse
import urllib.request

import contract
import problems
import processes
import pytest
import stack as stacks

JOB_SECONDS = 180
PROJECT = "projects/default"


class Rest:
    """JSON calls of a coordinator."""

    def __init__(self, base):
        self.base = f"{base}/v1"

    def open(self, path, body=None, **query):
        url = f"{self.base}/{path}"
        if query:
            url += "?" + urllib.parse.urlencode(query)
        data = None if body is None else json.dumps(body).encode()
        return urllib.request.urlopen(urllib.request.Request(url, data), timeout=JOB_SECONDS)

    def call(self, path, body=None, **query):
        with self.open(path, body, **query) as answer:
            return json.load(answer)

    def lines(self, path, body=None, **query):
        with self.open(path, body, **query) as answer:
            return [json.loads(line) for line in answer]

    def error(self, path, body=None, **query):
        with pytest.raises(urllib.error.HTTPError) as refused:
            self.call(path, body, **query)
        return refused.value.code, json.load(refused.value)["error"]


@pytest.fixture(scope="module")
def rest(stack):
    return Rest(stack.http_endpoints()["mtmc-coordinator"])


@pytest.fixture(scope="module")
def job(stack, rest):
    """A job that was created by JSON alone and has ended."""
    source = problems.pointwise().encode()
    digest = {"sha256": hashlib.sha256(source).hexdigest(), "size_bytes": len(source)}
    rest.call("artifacts", {"digest": digest, "chunk": base64.b64encode(source).decode()})
    wanted = {
        "problem": {"source": digest, "display_name": "chain"},
        "search": {"random": {"max_steps": 3}, "speed_of_light_ratio": 10},
        "budget": {"max_trials": 4},
        "evaluation": {"min_samples": 5, "max_noise_ratio": 0.5, "omit_profile": True},
    }
    created = rest.call(f"{PROJECT}/jobs", wanted, job_id="by-http")["job"]
    assert created["name"] == f"{PROJECT}/jobs/by-http"
    events = rest.lines(f"{created['name']}:watch")
    last = [line["event"]["job"] for line in events if "job" in line["event"]][-1]
    assert last["state"] == "STATE_SUCCEEDED" and last["end_reason"] == "END_REASON_TRIALS"
    return last


def test_a_job_runs_from_upload_to_winner_over_http(rest, job):
    best = rest.call(job["best_candidate"])["candidate"]
    assert best["evaluation"]["verdict"] == "VERDICT_CORRECT"
    parts = rest.lines(f"artifacts/{best['program']['sha256']}",
                       **{"digest.size_bytes": best["program"]["size_bytes"]})  # fmt: skip
    text = b"".join(base64.b64decode(part["chunk"]) for part in parts)
    assert hashlib.sha256(text).hexdigest() == best["program"]["sha256"]


def test_both_forms_say_the_same(stack, rest, job):
    by_http = rest.call(job["name"])["job"]
    by_grpc = stack.job(job["name"])
    assert by_http["budget_use"]["trials"] == by_grpc.budget_use.trials
    assert by_http["uid"] == by_grpc.uid
    assert [w["name"] for w in rest.call("workers")["workers"]] == [
        w.name for w in stack.client.call("WorkerService", "ListWorkers").workers
    ]


def test_errors_have_reason_and_status(rest, job):
    code, error = rest.error(f"{PROJECT}/jobs/none")
    assert code == 404 and error["status"] == "NOT_FOUND"
    assert any(detail.get("reason") == "JOB_NOT_FOUND" for detail in error["details"])
    code, error = rest.error(f"{PROJECT}/jobs", {"problem": {"source": {"sha256": "x"}}})
    assert code == 400 and any("field_violations" in detail for detail in error["details"])
    assert rest.error("nothing")[0] == 404
    assert rest.error("workers", {})[0] == 405


def test_a_filter_keeps_what_it_holds_for(stack, rest, job):
    def names(text):
        return {j["name"] for j in rest.call(f"{PROJECT}/jobs", filter=text).get("jobs", [])}

    assert job["name"] in names("state = SUCCEEDED AND problem.display_name = chain")
    assert job["name"] not in names("state != SUCCEEDED")
    assert job["name"] not in names("best_speedup < 0")
    code, error = rest.error(f"{PROJECT}/jobs", filter="state = DONE")
    assert code == 400 and "SUCCEEDED" in error["message"]
    listed = stack.json("candidates", "list", job["name"], "--filter", "trial >= 2")
    trials = [candidate["trial"] for candidate in listed["candidates"]]
    # Steps to programs that are known are no trials of the four, and are numbered too.
    assert len(trials) >= 3 and trials == list(range(2, 2 + len(trials)))
    assert stack.json("jobs", "list", "--filter", "state = RUNNING").get("jobs", []) == []
    refused = stack.run("jobs", "list", "--filter", "stat = x")
    assert refused.returncode == 2 and "best_speedup" in refused.stderr


def test_a_filtered_listing_has_every_page(rest, job):
    found, token = [], ""
    while True:
        page = rest.call(f"{job['name']}/candidates", page_size=1, page_token=token,
                         filter="trial = 1 OR trial = 4")  # fmt: skip
        found += [candidate["trial"] for candidate in page.get("candidates", [])]
        token = page.get("next_page_token", "")
        if not token:
            break
    assert found == [1, 4]


def test_a_basic_view_leaves_out_what_is_large(rest, job):
    def size(view):
        listed = rest.call(f"{job['name']}/candidates", view=view)["candidates"]
        steps = [c["trial"] for c in listed if "trial" in c]
        assert len(steps) >= 4 and steps == list(range(1, 1 + len(steps)))
        return len(json.dumps(listed))

    assert size("CANDIDATE_VIEW_BASIC") < size("CANDIDATE_VIEW_FULL") / 2


def test_one_stream_watches_several_jobs(stack, rest, job):
    other = stack.create_job(problems.pointwise(1), **problems.quick(stacks.CONTRACT, trials=2))
    watches = [{"name": job["name"], "cursor": 3}, {"name": other.name}]
    seen = {job["name"]: [3], other.name: [0]}
    for line in rest.lines(f"{PROJECT}/jobs:watch", {"watches": watches}):
        seen[line["job"]].append(int(line["event"]["sequence"]))
    for name, numbers in seen.items():
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), name
        assert len(numbers) > 1
    twice = {"watches": [{"name": other.name}] * 2}
    assert rest.error(f"{PROJECT}/jobs:watch", twice)[0] == 400
    with pytest.raises(contract.CallError) as refused:
        list(stack.client.stream("JobService", "WatchJobs", 20, parent=PROJECT))
    assert refused.value.reason == "INVALID_WATCH"


def test_a_client_that_leaves_a_stream_frees_its_place(stack, rest):
    running = stack.create_job(
        problems.pointwise(2), **problems.quick(stacks.CONTRACT, trials=300, strategy="random")
    )
    # More than the gateway serves at a time.
    for _ in range(80):
        with rest.open(f"{running.name}:watch") as answer:
            assert answer.readline()
    processes.eventually(lambda: rest.call(running.name), 20, "the gateway serves")
    rest.call(f"{running.name}:cancel", {})
    stack.await_job(running.name, JOB_SECONDS)
