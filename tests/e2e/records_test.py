# SPDX-License-Identifier: Apache-2.0
"""What one search learned is what the next one begins with, also in another store."""

import json

import kept
import problems
import pytest
import stack as stacks

JOB_SECONDS = 300
RELU = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, {name}):
        return torch.relu({name})


def get_inputs():
    return [torch.randn(512, 256)]


def get_init_inputs():
    return []
"""
TASK = "aten::relu.default(self=f32[512,256],) f32[512,256]!\n"
RECALLED = "tune by what earlier jobs measured, 1 part changed"


def record(stack, schedule):
    device = stack.json("workers", "list")["workers"][0]["device"]
    parts = ("product", "driver_version", "toolchain_version")
    return {
        "device_class": {part: device.get(part, "") for part in parts},
        "dialect": "DIALECT_OPENCL",
        "precision": "PRECISION_KERNELBENCH",
        "task": TASK,
        "start_groups": [{"task": TASK}],
        "schedule": schedule,
        "seconds": 1e-6,
        "start_seconds": 1e-3,
    }


def bring(stack, *records):
    path = stack.write("records.json", json.dumps({"records": records}))
    return stack.run("records", "import", str(path))


def listed(stack):
    return stack.json("records", "list").get("records", [])


def first_step(stack, name, **search):
    """The candidate after the start of a search on RELU, whose input is called `name`."""
    wanted = problems.quick(stacks.CONTRACT, trials=1, **search)
    job = stack.create_job(RELU.format(name=name), **wanted)
    stack.await_job(job.name, JOB_SECONDS)
    return stack.client.call("CandidateService", "ListCandidates", parent=job.name).candidates[1]


@pytest.fixture
def empty(stack):
    """The stack without records."""
    for one in listed(stack):
        assert stack.run("records", "delete", one["name"]).returncode == 0
    return stack


def test_a_search_begins_with_what_is_known_of_its_parts(empty):
    done = bring(empty, record(empty, "group r template=pointwise nodes=n0 block=64 vector=4\n"))
    assert done.returncode == 0, done.stderr
    step = first_step(empty, "anything")
    assert step.action.text == RECALLED
    assert step.decision.policy == "recalled"
    assert "template=pointwise" in step.schedule and "block=64" in step.schedule
    correct = stacks.CONTRACT.Evaluation.Verdict.Value("VERDICT_CORRECT")
    assert step.evaluation.verdict == correct
    assert first_step(empty, "other", omit_records=True).action.text != RECALLED


class Reachable(kept.Service):
    """Whose coordinator `mtmc` finds."""

    def run(self, *command, **options):
        return super().run(*command, **{"MTMC_ENDPOINT": self.endpoint, **options})


@pytest.mark.parametrize("flags", [(), ("--share-across-projects",)])
def test_records_of_another_project_are_known_where_projects_share(tmp_path, flags):
    with Reachable(tmp_path / "host", "--data-dir", tmp_path / "data", *flags) as service:
        schedule = "group r template=pointwise nodes=n0 block=64 vector=4\n"
        path = service.write("records.json", json.dumps({"records": [record(service, schedule)]}))
        done = service.run("--project", "other", "records", "import", path)
        assert done.returncode == 0, done.stderr

        assert (first_step(service, "anything").action.text == RECALLED) == bool(flags)


def test_a_record_that_makes_no_program_is_forgotten(empty):
    bring(empty, record(empty, "group r template=nonsense nodes=n0\n"))
    assert len(listed(empty)) == 1
    step = first_step(empty, "third")
    rejected = stacks.CONTRACT.Candidate.State.Value("STATE_REJECTED")
    assert (step.action.text, step.state) == (RECALLED, rejected)
    assert listed(empty) == []


def test_records_move_between_stores_and_the_faster_one_stays(empty, tmp_path):
    slow = record(empty, "group r template=pointwise nodes=n0 block=128\n")
    fast = {**slow, "schedule": "group r template=pointwise nodes=n0\n", "seconds": 5e-7}
    bring(empty, fast, slow)
    out = tmp_path / "out.json"
    assert empty.run("records", "export", "--file", str(out)).returncode == 0
    (kept,) = json.loads(out.read_text())["records"]
    assert kept["schedule"] == fast["schedule"]
    assert empty.run("records", "delete", kept["name"].rpartition("/")[2]).returncode == 0
    assert empty.run("records", "import", str(out)).returncode == 0
    assert [one["name"] for one in listed(empty)] == [kept["name"]]
    shown = empty.run("records", "list").stdout
    assert "relu.default" in shown and "2000.00x" in shown


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schedule": "group r template=pointwise nodes=n1\n"}, "records[1]"),
        ({"seconds": -1}, "INVALID_RECORD"),
        ({"unknown": 1}, "INVALID_RECORD"),
    ],
)
def test_a_bad_record_is_refused_with_all_others(empty, change, words):
    good = record(empty, "group r template=pointwise nodes=n0\n")
    done = bring(empty, good, {**good, **change})
    assert done.returncode == 2 and words in done.stderr, done
    assert listed(empty) == []


def test_a_record_that_is_not_there_is_not_found(empty):
    done = empty.run("records", "delete", "r0123")
    assert done.returncode != 0 and "RECORD_NOT_FOUND" in done.stderr
