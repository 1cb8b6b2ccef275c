# SPDX-License-Identifier: Apache-2.0
"""A language model that answers rubbish, nothing, or never: its steps are
rejected with a reason, the job ends, and the key is nowhere."""

import fake_llm
import problems
import pytest
import stack as stacks

KEY = "sk-this-must-not-appear-anywhere"

# What the model does, and the reason that the rejected candidates name.
REPLIES = {
    "rubbish": ("I would rather talk about the weather.", "REPLY_NOT_PARSED"),
    "code that is no program": ("```c\nint main() { return 0; }\n```", "REPLY_NOT_PARSED"),
    "nothing": ("", "REPLY_EMPTY"),
    "never": (None, "REPLY_TIMEOUT"),
}


class GatewayStack(stacks.Daemons):
    """A coordinator and a worker whose gateway has a short patience, which
    `mtmc up` has no flag for."""

    def __init__(self, folder, base_url):
        super().__init__(folder)
        self._base_url = base_url

    def launch(self):
        gateway = self.add(
            "mtmc-gateway", "--listen", "127.0.0.1:0", "--base-url", self._base_url, "--model", "fake",
            "--usd-per-million-output", "10000", "--first-byte-timeout", "2", "--total-timeout", "4", "--log-level", "debug",
            OPENAI_API_KEY=KEY,
        )  # fmt: skip
        self.endpoint = self.add(
            "mtmc-coordinator", "--listen", "127.0.0.1:0", "--gateway", gateway, "--policy",
            "127.0.0.1:9", "--data-dir", self.folder / "store",
        )  # fmt: skip
        self.add("mtmc-worker", "--coordinator", self.endpoint, "--scratch", self.folder / "scratch")

    def __exit__(self, *error):
        super().__exit__(*error)
        assert self.exit_codes == [0, 0, 0]


@pytest.mark.parametrize("case", REPLIES)
def test_a_model_that_is_no_use_costs_steps_and_nothing_else(tmp_path, case):
    reply, reason = REPLIES[case]
    with fake_llm.FakeLlm(reply) as llm, GatewayStack(tmp_path, llm.base_url) as stack:
        options = problems.quick(stacks.CONTRACT, trials=2, coder="llm")
        job = stack.create_job(problems.pointwise(), **options)
        ended = stack.await_job(job.name, 180)
        listed = stack.client.call("CandidateService", "ListCandidates", parent=job.name).candidates
        log = stack.event_log(job.name)

        # The start program is the built-in coder's, so there is a winner.
        assert stacks.CONTRACT.Job.State.Name(ended.state) == "STATE_SUCCEEDED", ended.failure
        rejected = [c for c in listed if c.state == c.State.Value("STATE_REJECTED")]
        assert rejected and all(reason in c.coder_failure for c in rejected), listed
        assert ended.budget_use.trials <= 2
        # Who asked, what was said, and what that took.
        use = rejected[0].token_use
        assert use.model == "fake" and use.prompt.sha256
        assert ended.budget_use.cost_micros == sum(c.token_use.cost_micros for c in rejected) > 0
        shown = stack.run("--endpoint", stack.endpoint, "candidates", "show", rejected[0].name, "--exchange")
        assert shown.returncode == 0, shown.stderr
        assert '"role":"user"' in shown.stdout
        assert bool(reply) == bool(use.reply.sha256)
        assert not reply or reply in shown.stdout
        assert llm.requests, "the model was never asked"
        assert llm.requests[0][0]["Authorization"] == f"Bearer {KEY}"
        assert KEY not in str(log)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path


def test_a_coder_that_is_not_set_up_fails_the_job_and_says_how_to_add_it(tmp_path):
    with stacks.Stack(tmp_path) as stack:
        path = stack.write("problem.py", problems.pointwise())
        done = stack.run("optimize", path, "--coder", "llm", "--trials", "1")
        shown = done.stdout + done.stderr
        assert done.returncode == 3, shown
        assert "[CODER_NOT_FOUND]" in shown and "llm" in shown
