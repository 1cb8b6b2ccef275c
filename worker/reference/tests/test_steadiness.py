# SPDX-License-Identifier: Apache-2.0
"""A workload on which rounding alone decides judges nobody."""

import contextlib

import pytest
import torch
import torch.nn.functional as F
from mtmc_reference.distribution import PARAMETERS_ONE, PARAMETERS_ZERO, SPECIAL_ROWS
from mtmc_reference.failure import ProblemFailure
from mtmc_reference.steadiness import Steadiness

_FOOTER = """
def get_inputs():
    return [torch.rand(64, 64)]

def get_init_inputs():
    return []
"""


def test_equal_features_under_a_norm_are_no_workload(client, write_problem):
    init = "self.fc = nn.Linear(64, 1024)"
    path = write_problem("return F.layer_norm(self.fc(x), (1024,))", init=init, footer=_FOOTER)

    dropped = client.load(path)["droppedDistributions"]

    assert "rounding alone" in dropped[PARAMETERS_ONE]
    # All zeros are exact.
    assert PARAMETERS_ZERO not in dropped and SPECIAL_ROWS not in dropped


def test_a_norm_in_another_order_is_right_on_equal_rows(client, write_problem):
    path = write_problem("return F.layer_norm(x, (64,))", footer=_FOOTER)
    assert SPECIAL_ROWS not in client.load(path)["droppedDistributions"]

    def running(t):
        total = torch.zeros(64, 1)
        for k in range(64):
            total = total + t["x"][:, k : k + 1]
        x = t["x"] - total / 64
        return x * torch.rsqrt((x**2).mean(1, keepdim=True) + 1e-5)

    assert client.check(running, 109, SPECIAL_ROWS)["isCorrect"]


def test_models_that_are_as_unsteady_on_public_inputs_keep_their_rows(client, write_problem):
    forward = "return (x.double().sum(1) * 3e6).sin().float() * 0 + (x * 1e5).sum(1).sin()"
    path = write_problem(forward, footer=_FOOTER)

    assert SPECIAL_ROWS not in client.load(path)["droppedDistributions"]


def test_where_memory_does_not_suffice_nothing_is_dropped():
    def run(*_):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    assert Steadiness(run, list).holds([], None, [torch.ones(4)])


def test_what_the_reference_refuses_after_rounding_is_not_steady():
    def run(*_):
        raise ProblemFailure("FORWARD_RAISED", "all elements should be between 0 and 1")

    assert not Steadiness(run, list).holds([], None, [torch.ones(4)])


@pytest.mark.parametrize("unit, is_telling", [(0.0, True), (2.0**-11, False)])
def test_what_cancels_is_telling_for_programs_that_round_little(unit, is_telling):
    weights = torch.randn(16, 16)

    def run(inputs, observer, state):
        with observer or contextlib.nullcontext():
            return [F.batch_norm(inputs[0] @ weights, None, None, training=True)]

    x = torch.randn(64, 16)
    far = [x + 150]
    steadiness = Steadiness(run, lambda: [x], unit)
    assert steadiness.is_telling([x], None, run([x], None, None))
    assert steadiness.is_telling(far, None, run(far, None, None)) == is_telling


def test_outputs_of_zero_tell_nothing():
    steadiness = Steadiness(lambda inputs, *_: [inputs[0].square()], lambda: [torch.ones(4)])

    assert not steadiness.is_telling([torch.full((4,), 1e-30)], None, [torch.zeros(4)])
    assert steadiness.is_telling([torch.full((4,), 1e-9)], None, [torch.full((4,), 1e-18)])


def test_rounding_keeps_probabilities(client, write_problem):
    forward = "return F.binary_cross_entropy(torch.sigmoid(x * 40), (x > 0).float())"
    source = "import torch.nn.functional as F\n"
    found = client.load(write_problem(forward, footer=source + _FOOTER))

    assert SPECIAL_ROWS not in found["droppedDistributions"]


def _drawdowns(inputs, observer, state):
    """How often a running sum lies below what it was before."""
    with observer or contextlib.nullcontext():
        running = 100.0 + inputs[0].cumsum(1)
        return [(running.cummax(1).values > running).sum(1)]


def test_counts_that_rounding_decides_are_not_steady():
    public = [torch.randint(-4, 5, (64, 256), generator=torch.Generator().manual_seed(0)) * 0.25]
    steadiness = Steadiness(_drawdowns, lambda: public)
    assert steadiness.holds(public, None, _drawdowns(public, None, None))
    far = [public[0].clone()]
    far[0][:, 40] = 3e10
    assert not steadiness.holds(far, None, _drawdowns(far, None, None))


def test_indices_of_equal_elements_are_judged_by_their_score_alone():
    def run(inputs, observer, state):
        with observer or contextlib.nullcontext():
            return [inputs[0].topk(3, dim=1).indices]

    equal = [torch.ones(16, 64)]
    steadiness = Steadiness(run, lambda: [torch.randn(16, 64)])
    assert steadiness.holds(equal, None, run(equal, None, None))
