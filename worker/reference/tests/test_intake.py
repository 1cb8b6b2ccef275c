# SPDX-License-Identifier: Apache-2.0
"""Flaws of problems, from their behaviour alone."""

import pytest

_FOOTER = """
def get_inputs():
    return [{}]

def get_init_inputs():
    return []
"""
_LINEAR = "self.fc = nn.Linear(64, 64)"


@pytest.mark.parametrize(
    "forward, init, inputs, flaws",
    [
        ("return torch.tanh(self.fc(x))", _LINEAR, "torch.rand(32, 64)", set()),
        ("return F.layer_norm(x, (64,))", "pass", "torch.rand(32, 64)", set()),
        ("return F.max_pool2d(x, 3)", "pass", "torch.rand(2, 4, 9, 9)", set()),
        (
            "return torch.relu(x)",
            "pass",
            "torch.rand(32, 64)",
            {"kernelbench_input", "public_input"},
        ),
        (
            "x = self.fc(x)\nreturn F.gelu(x - x.amax(1, keepdim=True)) * 0",
            _LINEAR,
            "torch.rand(32, 64)",
            {"constant_output", "kernelbench_zeros"},
        ),
        ("return torch.softmax(x, 1)", "pass", "torch.rand(4, 4096)", {"half_zeros"}),
        (
            "self.calls += 1\nreturn self.fc(x) / self.calls",
            _LINEAR + "\nself.calls = 0",
            "torch.rand(32, 64)",
            {"python_state"},
        ),
        (
            "self.past.append(x.mean())\nreturn self.fc(x) + len(self.past)",
            _LINEAR + "\nself.past = []",
            "torch.rand(32, 64)",
            {"python_state"},
        ),
        (
            "self.seen = self.seen + x.mean(0)\nreturn self.fc(x) + self.seen",
            _LINEAR + "\nself.seen = torch.zeros(64)",
            "torch.rand(32, 64)",
            set(),
        ),
        (
            "return self.w * (1 + 0 * x.sum())",
            "self.w = nn.Parameter(torch.rand(9))",
            "torch.rand(8)",
            {"input_independent"},
        ),
        ("return torch.cumprod(x, 1)", "pass", "torch.rand(4, 4096)", {"partial_input"}),
        ("return torch.tanh(x).clamp(-1, 1)", "pass", "torch.randn(8, 8)", {"identity_operation"}),
        (
            "return torch.tanh(x) * self.s",
            "self.s = nn.Parameter(torch.ones(8))",
            "torch.randn(8, 8)",
            {"identity_parameter"},
        ),
        (
            "y = self.fc(x)\nreturn torch.tanh(x)",
            _LINEAR,
            "torch.randn(8, 64)",
            {"unused_parameter", "dead_operation"},
        ),
        ("return F.dropout(x, 0.5, True)", "pass", "torch.rand(64, 64)", {"random_output"}),
        (
            "return self.e(x)",
            "self.e = nn.Embedding(9, 4)",
            "torch.randint(0, 9, (8,))",
            {"integer_input"},
        ),
        ("return (x * 1e7) ** 2", "pass", "torch.rand(8, 8)", {"huge_output"}),
    ],
)
def test_flaws_are_named(client, write_problem, forward, init, inputs, flaws):
    found = client.load(write_problem(forward, init=init, footer=_FOOTER.format(inputs)))["flaws"]

    assert flaws <= set(found) if flaws else not found


def test_a_probe_that_hidden_workloads_refuse_does_not_make_a_problem_degenerate(
    client, write_problem
):
    footer = _FOOTER.format("torch.rand(32, 64)")

    found = client.load(write_problem("return torch.relu(x)", footer=footer))

    assert found["passingProbes"] == []
    assert client.load(write_problem("return x * 1", footer=footer))["passingProbes"] == ["input"]
