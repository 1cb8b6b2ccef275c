# SPDX-License-Identifier: Apache-2.0
"""Traces of real jobs at a real collector: one for each trial, through every daemon
and the worker's children, without a secret; and jobs whose collector is no use."""

import collections
import json
import socket
import urllib.request

import fake_llm
import otlp_collector
import problems
import pytest
import stack as stacks

JOB_SECONDS = 240
STAGES = stacks.CONTRACT.pool.FindEnumTypeByName("mtmc.v1.Stage").values_by_number
DAEMONS = {"mtmc-coordinator", "mtmc-gateway", "mtmc-policyd", "mtmc-worker"}
# What must not leave the host that it was planted on.
KEY = "sk-this-must-not-appear-anywhere"
TOKEN = "token-this-must-not-appear-anywhere"
SOURCE = "source-this-must-not-appear-anywhere"
REPLY = "reply-this-must-not-appear-anywhere"


class TracedStack(stacks.Daemons):
    """All four daemons with a collector, which may be none."""

    def __init__(self, folder, endpoint, llm_url):
        super().__init__(folder)
        self._llm_url = llm_url
        token = self.write("token", TOKEN)
        self._channels = ("--token-file", token)
        self._traced = (
            "--otlp-endpoint", endpoint, "--log-format", "json", "--log-level", "debug",
        )  # fmt: skip

    def add(self, program, *flags, **changes):
        return super().add(program, *flags, *self._traced, **changes)

    def launch(self):
        policy = self.add("mtmc-policyd", "--listen", "127.0.0.1:0")
        gateway = self.add(
            "mtmc-gateway", "--listen", "127.0.0.1:0", "--base-url", self._llm_url, "--model", "fake",
            OPENAI_API_KEY=KEY,
        )  # fmt: skip
        self.endpoint = self.add(
            "mtmc-coordinator", "--listen", "127.0.0.1:0", "--gateway", gateway, "--policy", policy,
            "--data-dir", self.folder / "store", *self._channels,
        )  # fmt: skip
        self.add(
            "mtmc-worker", "--coordinator", self.endpoint, "--scratch", self.folder / "scratch",
            *self._channels,
        )  # fmt: skip

    def run_job(self, number, **search):
        """A job that has ended, and its candidates by name."""
        source = f"# {SOURCE}\n" + problems.pointwise(number)
        job = self.create_job(source, **problems.quick(stacks.CONTRACT, trials=3, **search))
        job = self.await_job(job.name, JOB_SECONDS)
        assert stacks.CONTRACT.Job.State.Name(job.state) == "STATE_SUCCEEDED", job.failure
        listed = self.client.call(
            "CandidateService", "ListCandidates", parent=job.name, page_size=500
        )
        return job, {candidate.name: candidate for candidate in listed.candidates}

    def span_counts(self, program):
        """What became of a daemon's spans, by mtmc_trace_spans_total."""
        with urllib.request.urlopen(f"http://{self.http[program]}/metrics", timeout=20) as answer:
            lines = answer.read().decode().splitlines()
        prefix = 'mtmc_trace_spans_total{outcome="'
        found = [line.removeprefix(prefix) for line in lines if line.startswith(prefix)]
        return {line.split('"')[0]: float(line.split()[-1]) for line in found}


class Traced:
    """What came of two jobs: one by the built-in coder, one by a language model."""

    def __init__(self, folder):
        with fake_llm.FakeLlm(REPLY) as llm, otlp_collector.Collector() as collector:
            with TracedStack(folder, f"http://{collector.endpoint}", llm.base_url) as stack:
                _, self.built = stack.run_job(0)
                _, self.written = stack.run_job(1, coder="llm")
            # Daemons send what is left before they end.
            self.spans = collector.spans
            self.received = collector.received
        self.exit_codes = stack.exit_codes
        self.logs = {name: stack.log(name) for name in DAEMONS}
        self.candidates = self.built | self.written
        self.traces = collections.defaultdict(list)
        for span in self.spans:
            self.traces[span.trace].append(span)

    def root(self, candidate):
        roots = [s for s in self.spans if not s.parent and s.attributes.get("mtmc.candidate") == candidate]
        assert len(roots) == 1, f"{candidate} has the traces {roots}"
        return roots[0]

    def below(self, span):
        return [s for s in self.traces[span.trace] if s.parent == span.id]

    def only(self, span, name):
        found = [s for s in self.below(span) if s.name == name]
        assert len(found) == 1, f"{span.name} has {[s.name for s in self.below(span)]}, not one {name}"
        return found[0]


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    return Traced(tmp_path_factory.mktemp("traced"))


def was_evaluated(candidate):
    return candidate.HasField("evaluation") and not candidate.evaluation.is_cached


def test_each_trial_is_one_trace(traced):
    roots = [s for s in traced.spans if not s.parent]
    trials = [s for s in roots if s.name == "trial"]

    assert {s.name for s in roots} <= {"trial", "decision", "confirmation"}
    assert sorted(s.attributes["mtmc.candidate"] for s in trials) == sorted(traced.candidates)
    assert len({s.trace for s in roots}) == len(roots), "two traces have one id"
    assert len(traced.candidates) >= 4


def test_every_span_has_its_parent_and_lies_within_its_trace(traced):
    assert len({s.id for s in traced.spans}) == len(traced.spans)
    for trace in traced.traces.values():
        by_id = {s.id: s for s in trace}
        assert sum(not s.parent for s in trace) == 1, trace
        for span in trace:
            assert not span.parent or span.parent in by_id, f"{span} has no parent"
            assert span.start <= span.end


def test_a_trial_goes_through_every_daemon_with_the_right_parents(traced):
    candidate = next(c for c in traced.built.values() if c.trial == 1)
    trial = traced.root(candidate.name)

    assert trial.service == "mtmc-coordinator"
    assert {s.service for s in traced.traces[trial.trace]} == DAEMONS
    propose = traced.only(trial, "propose")
    for parent, method, service in (
        (propose, "mtmc.v1.MicroCodingService/ListActions", "mtmc-gateway"),
        (propose, "mtmc.v1.PolicyService/ChooseAction", "mtmc-policyd"),
        (traced.only(trial, "code"), "mtmc.v1.MicroCodingService/ApplyAction", "mtmc-gateway"),
    ):
        call = traced.only(parent, method)
        served = traced.only(call, method)
        assert (call.service, call.kind) == ("mtmc-coordinator", "client")
        assert (served.service, served.kind) == (service, "server")
        assert served.attributes["rpc.system"] == "grpc"
        assert served.attributes["rpc.grpc.status_code"] == 0


def test_an_evaluation_shows_its_stages_and_the_calls_of_the_children(traced):
    evaluated = [c for c in traced.built.values() if was_evaluated(c)]
    assert evaluated
    for candidate in evaluated:
        evaluate = traced.only(traced.root(candidate.name), "evaluate")
        work = traced.only(evaluate, "evaluation")
        assert (work.service, work.kind) == ("mtmc-worker", "server")
        # What is loaded is unloaded after the last stage.
        stages = {s.name: s for s in traced.below(work) if s.name != "runner.unload"}
        recorded = {STAGES[span.stage].name.removeprefix("STAGE_").lower() for span in candidate.evaluation.spans}
        assert set(stages) == recorded and {"build", "verify", "measure"} <= recorded
        calls = {name: {s.name for s in traced.below(stage)} for name, stage in stages.items()}
        assert {"reference.load", "builder.build"} <= calls["build"]
        assert any(name.startswith("runner.") for name in calls["verify"])
        assert any(name.startswith("reference.") for name in calls["verify"])
        assert any(name.startswith("runner.") for name in calls["measure"])


def test_a_trial_says_whose_it_is_and_what_came_of_it(traced):
    verdicts = stacks.CONTRACT.Evaluation.Verdict
    for name, candidate in traced.candidates.items():
        said = traced.root(name).attributes
        assert said["mtmc.job"] == name.rpartition("/candidates/")[0]
        assert said["mtmc.trial"] == candidate.trial
        assert said["mtmc.device.class"].splitlines() == [said["mtmc.device.class"]]
        if candidate.HasField("evaluation"):
            verdict = verdicts.Name(candidate.evaluation.verdict).removeprefix("VERDICT_").lower()
            assert said["mtmc.verdict"] == verdict
            assert said["mtmc.worker"] == candidate.evaluation.worker
            assert said["mtmc.evaluation.is_cached"] == candidate.evaluation.is_cached
        if was_evaluated(candidate):
            work = traced.only(traced.only(traced.root(name), "evaluate"), "evaluation").attributes
            assert work["mtmc.candidate"] == name
            assert work["mtmc.worker"] == said["mtmc.worker"]
            assert work["mtmc.verdict"] == said["mtmc.verdict"]
            assert work["mtmc.device.class"] == said["mtmc.device.class"]


def test_a_language_model_is_a_span_of_the_gateway_with_its_tokens(traced):
    asked = [s for s in traced.spans if s.name == "chat fake"]
    by_id = {s.id: s for s in traced.spans}

    assert asked
    for chat in asked:
        assert (chat.service, chat.kind) == ("mtmc-gateway", "client")
        assert by_id[chat.parent].name == "mtmc.v1.MicroCodingService/ApplyAction"
        assert chat.attributes["gen_ai.usage.input_tokens"] == 100
        assert chat.attributes["gen_ai.usage.output_tokens"] == 5


def test_no_secret_is_sent(traced):
    assert traced.received
    for secret in (KEY, TOKEN, SOURCE, REPLY):
        assert secret.encode() not in traced.received, secret


def test_a_log_line_names_the_span_that_it_belongs_to(traced):
    by_id = {s.id: s for s in traced.spans}
    found = collections.defaultdict(set)
    for daemon, log in traced.logs.items():
        for line in map(json.loads, filter(None, log.splitlines())):
            if "span_id" in line:
                span = by_id[line["span_id"]]
                assert span.trace == line["trace_id"] and span.service == daemon
                found[line["message"]].add(span.name)

    assert found["trial ended"] == {"trial"}
    assert found["lease done"] == {"evaluation"}


def test_daemons_send_all_they_have_and_end_well(traced):
    assert traced.exit_codes == [0] * len(DAEMONS)


@pytest.fixture
def silent():
    """An endpoint that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("collector", ["refuses", "silent"])
def test_a_collector_that_is_no_use_costs_no_trial(tmp_path, silent, collector):
    endpoint = silent if collector == "silent" else "127.0.0.1:9"
    with fake_llm.FakeLlm(REPLY) as llm, TracedStack(tmp_path, endpoint, llm.base_url) as stack:
        job, candidates = stack.run_job(0)
        counts = stack.span_counts("mtmc-worker")

    assert job.end_reason == stacks.CONTRACT.Job.EndReason.Value("END_REASON_TRIALS")
    assert job.budget_use.trials == 3
    assert all(c.HasField("evaluation") for c in candidates.values())
    assert job.best_candidate in candidates
    assert counts == {"sent": 0, "dropped": 0}, "spans wait until their queue is full"
    assert stack.exit_codes == [0] * len(DAEMONS)
