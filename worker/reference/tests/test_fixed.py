# SPDX-License-Identifier: Apache-2.0
"""What the user fixes is the same in every workload."""

import pytest
import torch
from mtmc_reference.distribution import DISTRIBUTIONS
from mtmc_reference.failure import ProblemFailure
from test_parameters import tensors

_FOOTER = """
{comment}
def get_inputs():
    return [torch.randn(32, 16)]

def get_init_inputs():
    return []
"""
_INIT = "self.fc = nn.Linear(16, 8)"


@pytest.fixture
def load(client, write_problem):
    def load(comment="", **problem):
        footer = _FOOTER.format(comment=comment)
        return client.load(write_problem("return self.fc(x)", init=_INIT, footer=footer), **problem)

    return load


@pytest.mark.parametrize(
    "comment, names",
    [
        ("# mtmc: fixed x", {"x"}),
        ("# mtmc: fixed fc.weight, x", {"fc_weight", "x"}),
        ("#mtmc:fixed fc.bias", {"fc_bias"}),
        ("# mtmc: fixed parameters", {"fc_weight", "fc_bias"}),
        ("text = '# mtmc: fixed nobody'", set()),
    ],
)
def test_names_in_a_comment_stay_in_every_workload(load, client, comment, names):
    found = load(comment)

    assert found["fixedInputs"] == dict.fromkeys(names, "fixed by the user")
    public = tensors(client)
    for seed, name in [(1, "DISTRIBUTION_UNSPECIFIED"), *enumerate(DISTRIBUTIONS, start=101)]:
        hidden = tensors(client, seed, name) or {}
        for key, value in hidden.items():
            assert key not in names or torch.equal(value, public[key]), (name, key)
    hidden = tensors(client, 1)
    assert all(torch.equal(hidden[key], public[key]) == (key in names) for key in public)


def test_names_in_the_request_stay(load, client):
    assert load(fixed=["fc.weight"])["fixedInputs"] == {"fc_weight": "fixed by the user"}
    assert torch.equal(tensors(client, 1)["fc_weight"], tensors(client)["fc_weight"])


@pytest.mark.parametrize(
    "comment, problem, line, words",
    [
        ("# mtmc: fixed weight", {}, 13, "'weight' is neither"),
        ("# mtmc: fixed", {}, 13, "names nothing"),
        ("", {"fixed": ["y"]}, 0, "'y' is neither"),
    ],
)
def test_an_unknown_name_is_the_problems_failure(load, comment, problem, line, words):
    with pytest.raises(ProblemFailure) as failure:
        load(comment, **problem)

    assert (failure.value.reason, failure.value.line) == ("FIXED_UNKNOWN", line)
    assert words in failure.value.message and "x, fc.weight, fc.bias" in failure.value.message
