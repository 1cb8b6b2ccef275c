# SPDX-License-Identifier: Apache-2.0
"""Inputs that hold no ordinary numbers: what is drawn instead, and what stays legal."""

import math

import pytest
import torch
from mtmc_reference.distribution import EXTREMES, REDRAWN
from mtmc_reference.domain import domain_of
from mtmc_reference.graph_domain import Uses
from mtmc_reference.workload import Key

_SOURCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, {arguments}):
        {body}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""
_KEYS = {REDRAWN: Key(107, REDRAWN), EXTREMES: Key(108, EXTREMES)}


@pytest.fixture
def drawn(client, write_problem):
    """Loads a problem; inputs by distribution: REDRAWN, EXTREMES, and `public`."""

    def load(arguments, body, inputs, init="pass", **problem):
        parts = {"arguments": arguments, "body": body, "inputs": inputs, "init": init}
        found = client.load(write_problem(source=_SOURCE.format(**parts)), **problem)
        workloads = client.session._loaded._workloads
        answer = {"public": workloads.draw_own(Key(0)), "inspection": found}
        for name, key in _KEYS.items():
            if name not in found["droppedDistributions"]:
                answer[name] = workloads.draw_own(key)
        return answer

    return load


def test_labels_are_redrawn_and_ignored_ones_occur(drawn):
    inputs = drawn(
        "x, y", "return F.cross_entropy(x, y)", "torch.randn(64, 8), torch.arange(64) % 8"
    )

    labels, extreme = inputs[REDRAWN][1], inputs[EXTREMES][1]
    assert not torch.equal(labels, inputs["public"][1]) and set(labels.tolist()) <= set(range(8))
    assert -100 in extreme and set(extreme.tolist()) <= {-100, *range(8)}


def test_a_class_that_the_user_ignores_occurs(drawn):
    body = "return F.cross_entropy(x, y, ignore_index=255)"
    inputs = drawn("x, y", body, "torch.randn(64, 8), torch.arange(64) % 8")

    assert 255 in inputs[EXTREMES][1] and -100 not in inputs[EXTREMES][1]


def test_offsets_of_an_embedding_bag_stay_in_order_and_have_empty_segments(drawn):
    inputs = drawn(
        "i, o",
        "return self.e(i, o)",
        "torch.randint(0, 9, (64,)), torch.arange(0, 64, 4)",
        "self.e = nn.EmbeddingBag(9, 4)",
    )

    redrawn, extreme = inputs[REDRAWN][1], inputs[EXTREMES][1]
    for offsets in (redrawn, extreme):
        assert offsets[0] == 0 and (offsets.diff() >= 0).all() and offsets[-1] <= 64
        assert not torch.equal(offsets, inputs["public"][1])
    assert (extreme.diff() == 0).any()
    # Whoever has room for small segments alone meets one of nearly half of all.
    assert redrawn.diff(append=torch.tensor([64])).max() >= 28


def test_rows_of_a_mask_are_one_value_or_have_long_runs(drawn):
    inputs = drawn("x, m", "return torch.where(m, x, -x)", "torch.randn(64, 64), torch.rand(64, 64) < 0.7")

    mask = inputs[REDRAWN][1]
    turns = (mask[:, 1:] != mask[:, :-1]).sum(dim=1)
    assert (turns == 0).any() and (turns > 16).any()


def test_of_two_rows_of_a_mask_one_is_all_false(drawn):
    inputs = drawn("x, m", "return torch.where(m, x, -x)", "torch.randn(2, 24), torch.rand(2, 24) < 0.7")

    assert (~inputs[EXTREMES][1]).all(dim=1).any()


def test_indices_stay_below_the_size_that_the_operator_has(drawn):
    inputs = drawn(
        "i", "return self.e(i)", "torch.randint(0, 5, (64,))", "self.e = nn.Embedding(50, 4)"
    )

    assert 0 <= inputs[REDRAWN][0].min() and inputs[REDRAWN][0].max() <= 4
    assert inputs[EXTREMES][0].max() == 49 and inputs[EXTREMES][0].min() == 0


def test_indexing_meets_negative_numbers(drawn):
    inputs = drawn("x, i", "return x[i] * 2", "torch.randn(16, 4), torch.randint(0, 16, (64,))")

    assert inputs[EXTREMES][1].min() < 0 and inputs[EXTREMES][1].min() >= -16


def test_places_that_are_written_stay_distinct(drawn):
    body = "return torch.index_copy(x, 0, i, z)"
    drawing = "torch.randn(64, 4), torch.arange(16), torch.randn(16, 4)"
    inputs = drawn("x, i, z", body, drawing)

    for name in (REDRAWN, EXTREMES):
        assert not torch.equal(inputs[name][1], inputs["public"][1])
        assert len(set(inputs[name][1].tolist())) == 16


def test_a_boolean_mask_has_another_pattern_and_whole_rows(drawn):
    drawing = "torch.randn(64, 64), torch.ones(64, 64).tril().bool()"
    inputs = drawn("x, m", "return x.masked_fill(m, 0.0)", drawing)

    mask, extreme = inputs[REDRAWN][1], inputs[EXTREMES][1]
    assert not torch.equal(mask, inputs["public"][1])
    assert extreme.all(1).any() and (~extreme).all(1).any()


def test_a_mask_of_few_rows_has_one_that_is_empty_and_one_that_is_full(drawn):
    drawing = "torch.randn(6, 64), torch.arange(64)[None] < torch.randint(20, 65, (6, 1))"
    extreme = drawn("x, m", "return x.masked_fill(m, 0.0)", drawing)[EXTREMES][1]

    assert extreme.all(1).any() and (~extreme).all(1).any()


def test_a_mask_with_infinities_leaves_no_row_without_elements(drawn):
    mask = "torch.zeros(16, 16).masked_fill(torch.ones(16, 16).triu(1).bool(), float('-inf'))"
    inputs = drawn("x, m", "return torch.softmax(x + m, 1)", f"torch.randn(16, 16), {mask}")

    redrawn = inputs[REDRAWN][1]
    assert not torch.equal(redrawn, inputs["public"][1])
    assert set(redrawn.unique().tolist()) == {0, -math.inf}
    assert (redrawn == 0).any(1).all()


@pytest.mark.parametrize("constant", ["zeros", "ones"])
def test_constant_floats_become_ordinary_ones(drawn, constant):
    inputs = drawn("x, h", "return torch.tanh(x + h)", f"torch.randn(8, 64), torch.{constant}(64)")

    assert inputs[EXTREMES][1].std() > 0.1


def test_numbers_that_only_arithmetic_takes_go_beyond_32_bits(drawn):
    inputs = drawn("x, n", "return x + n", "torch.randn(64, 32), torch.arange(32)")

    numbers = inputs[EXTREMES][1]
    assert numbers.abs().max() > 2**53
    assert (numbers.double().long() != numbers).any()


def test_what_becomes_an_index_later_stays_where_it_was_seen(drawn):
    body = "return x.gather(1, (i * 2).unsqueeze(1))"
    inputs = drawn("x, i", body, "torch.randn(64, 16), torch.randint(0, 8, (64,))")

    assert 0 <= inputs[EXTREMES][1].min() and inputs[EXTREMES][1].max() <= 7


def test_a_draw_that_raises_is_milder_and_named_at_last(drawn):
    body = "s = torch.linalg.cholesky(torch.diag(d)); return x @ s"
    inputs = drawn("x, d", body, "torch.randn(4, 24), torch.ones(24)")

    # Negative numbers are refused, others between 0.5 and 1.5 are not.
    assert 0.5 <= inputs[EXTREMES][1].min() and inputs[EXTREMES][1].std() > 0
    assert inputs["inspection"]["fixedInputs"] == {}


def test_an_input_that_the_reference_accepts_in_no_other_way_is_named(drawn):
    body = "return torch.log(x.abs() + 1) / (n == torch.arange(4)).all()"
    inputs = drawn("x, n", body, "torch.randn(8, 4), torch.arange(4)")

    assert "not finite" in inputs["inspection"]["fixedInputs"]["n"]
    assert list(inputs["inspection"]["fixedInputs"]) == ["n"]


def test_the_first_row_of_a_mask_is_true_where_that_of_floats_is_zero(client, write_problem):
    parts = {"arguments": "x, m", "body": "return torch.where(m, x, -x)", "init": "pass"}
    parts["inputs"] = "torch.randn(24, 17), torch.randint(0, 2, (24, 17)).bool()"
    client.load(write_problem(source=_SOURCE.format(**parts)))

    x, mask = client.session._loaded._workloads.draw_own(Key(109, "DISTRIBUTION_SPECIAL_ROWS"))

    assert mask[0].all() and not mask.all() and (x[0] == 0).all()


def test_rows_of_a_mask_that_is_added_are_all_at_one_end(drawn):
    mask = "torch.full((64, 64), -1e9).triu(1)"
    inputs = drawn("x, y", "return torch.softmax(x + y, 1)", f"torch.randn(64, 64), {mask}")

    extreme = inputs[EXTREMES][1]
    assert (extreme == -1e9).all(1).any() and (extreme == 0).all(1).any()
    assert extreme.unique().numel() > 1000


def test_one_refused_input_does_not_keep_the_others(drawn):
    body = "return x.sum() / (n == torch.arange(4)).all() + k"
    inputs = drawn("x, n, k", body, "torch.randn(8, 4), torch.arange(4), torch.arange(8)")

    assert torch.equal(inputs[REDRAWN][1], torch.arange(4))
    assert not torch.equal(inputs[REDRAWN][2], torch.arange(8))


def test_a_program_that_bakes_an_input_of_the_file_is_refused(client, write_problem, drawn):
    drawn("x, p", "return x * p[:, None]", "torch.randn(8, 16), torch.arange(8)")
    baked = lambda t: t["x"] * torch.arange(8)[:, None]

    answers = client.check_all(baked)
    assert answers["public"]["isCorrect"]
    assert not answers[REDRAWN]["isCorrect"] and not answers[EXTREMES]["isCorrect"]
    honest = client.check_all(lambda t: t["x"] * t["p"][:, None])
    assert all(answer["isCorrect"] for answer in honest.values())


def test_a_program_that_forgets_ignored_labels_is_refused(client, write_problem, drawn):
    drawing = "torch.randn(64, 8), torch.randint(0, 8, (64,))"
    drawn("x, labels", "return F.cross_entropy(x, labels)", drawing)

    def forgetful(t):
        rows = torch.log_softmax(t["x"].double(), 1)
        return -rows[torch.arange(64), t["labels"] % 8].mean().float()

    assert client.check(forgetful)["isCorrect"]
    # Of one mean in two hundred, the ignored rows happen to have the mean of the others.
    answers = [client.check(forgetful, number, EXTREMES) for number in range(3, 7)]
    assert not all(answer["isCorrect"] for answer in answers), answers


def test_without_an_input_to_change_a_distribution_is_dropped(drawn):
    dropped = drawn("x", "return x * 2", "torch.randn(8)")["inspection"]["droppedDistributions"]

    assert dropped[REDRAWN] == dropped[EXTREMES] == "no input to change"
    assert dropped["DISTRIBUTION_PARAMETERS_ONE"] == "there are no parameters"


def test_some_rows_have_few_numbers_runs_or_a_late_one(client, write_problem):
    footer = """
def get_inputs():
    return [torch.randint(0, 9, (256, 96))]

def get_init_inputs():
    return []
"""
    client.load(write_problem("return (x == 5).cumsum(1)", footer=footer))

    x = client.session._loaded._workloads.draw(Key(107, "DISTRIBUTION_REDRAWN"))[0]

    is_chosen = x == 5
    is_equal = (x == x[:, :1]).all(1)
    assert is_equal.any() and (is_equal & is_chosen[:, 0]).any()
    assert (~is_chosen).all(1).any()
    assert (is_chosen.any(1) & ~is_chosen[:, :72].any(1)).any()
    changes = (x[:, 1:] != x[:, :-1]).sum(1)
    assert ((changes > 0) & (changes < 16)).any() and (changes > 64).any()
    assert x.min() >= 0 and x.max() < 9


def test_a_label_that_is_ignored_is_no_end_of_the_range():
    """What lies between it and the classes is none, and may end the reference's process."""
    labels = torch.tensor([-100, 5, 900, -100])
    uses = Uses(legal=(0, 999), special=(-100,), is_restricted=True)

    found = domain_of([labels, torch.tensor([-100, -100])], uses)

    assert (found.low, found.high) == (5, 900) and found.values.tolist() == [-100, 5, 900]
    found = domain_of([labels[:1]], uses)
    assert (found.low, found.high) == (-100, -100)
