# SPDX-License-Identifier: Apache-2.0
"""Inputs that are read and matter to no output are found, others never."""

import pytest

_FOOTER = """
def get_inputs():
    return [{}]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    "forward, init, idle",
    [
        ("return x * 2 + 0 * self.k.sum()", "self.k = nn.Parameter(torch.randn(4))", ["k"]),
        (
            "return torch.where(torch.ones_like(x) > 0, x, self.k)",
            "self.k = nn.Parameter(torch.randn(16))",
            ["k"],
        ),
        (
            "return torch.ones_like(x) * self.k + 0 * x",
            "self.k = nn.Parameter(torch.ones(16))",
            ["x"],
        ),
    ],
)
def test_an_idle_input_is_found(client, write_problem, forward, init, idle):
    footer = _FOOTER.format("torch.rand(32, 16)")

    assert client.load(write_problem(forward, init=init, footer=footer))["idleInputs"] == idle


@pytest.mark.parametrize(
    "forward, init, inputs",
    [
        # Statistics that only their own new values depend on.
        ("return self.n(x)", "self.n = nn.BatchNorm1d(16)", "torch.rand(32, 16)"),
        # Idle on the public inputs, which are never negative.
        ("return torch.relu(x) + x.clamp(max=0) * self.k", "self.k = nn.Parameter(torch.randn(16))",
         "torch.rand(32, 16)"),
        # Idle unless an element is large.
        ("return torch.where(x > 20, self.k, x)", "self.k = nn.Parameter(torch.randn(16))",
         "torch.randn(320, 16)"),
        ("return self.e(x)", "self.e = nn.Embedding(9, 4)", "torch.zeros(8, dtype=torch.long)"),
        ("return x + self.k", "self.k = nn.Parameter(torch.zeros(16))", "torch.zeros(32, 16)"),
    ],
)
def test_an_input_that_matters_is_never_idle(client, write_problem, forward, init, inputs):
    path = write_problem(forward, init=init, footer=_FOOTER.format(inputs))

    assert client.load(path)["idleInputs"] == []


@pytest.mark.parametrize(
    "tensor", ["torch.zeros(0, 6)", "torch.zeros(0, 6, dtype=torch.long)", "torch.zeros(0, 6) > 0"]
)
def test_an_input_without_elements_changes_nothing(client, write_problem, tensor):
    head = "import torch\nimport torch.nn as nn\n\nclass Model(nn.Module):\n    def forward(self, x, e):"
    body = "\n        return torch.cat((x, e * 2)), e\n"
    path = write_problem(source=head + body + _FOOTER.format(f"torch.randn(3, 6), {tensor}"))

    client.load(path)
