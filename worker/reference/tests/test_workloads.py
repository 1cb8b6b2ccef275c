# SPDX-License-Identifier: Apache-2.0
"""Hidden workloads: what changes, what stays valid, and who may know it."""

import math

import pytest
import torch
from mtmc_reference import distribution, workload
from mtmc_reference.memory_budget import MemoryBudget
from mtmc_reference.problem import ProblemFile
from mtmc_reference.workload import Key, Workloads
from test_parameters import tensors

TIMES_3, TIMES_001, NEGATED, OFFSET, HEAVY_TAILED, RAMPS = distribution.DISTRIBUTIONS[:6]

CENTERED = "DISTRIBUTION_CENTERED"

_FOOTER = """
def get_inputs():
    return {inputs}

def get_init_inputs():
    return []
"""


def draw(name, inputs, seed=1, level=0):
    changer = distribution.Changer([inputs])
    levels = dict.fromkeys(changer.ways(name), level)
    return changer.apply(name, [value.clone() for value in inputs], levels, seed)


def inputs_of(*tensors):
    return _FOOTER.format(inputs=f"[{', '.join(tensors)}]")


@pytest.mark.parametrize(
    "name, factors",
    [(TIMES_3, (3.0, 1.8, 1.3)), (TIMES_001, (0.01, 0.3, 0.9)), (NEGATED, (-1.0,))],
)
def test_scaled_inputs(name, factors):
    x = torch.rand(8, 16)

    for level, factor in enumerate(factors, start=-len(factors)):
        assert torch.equal(draw(name, [x], level=level)[0], factor * x)


def test_tiny_inputs_have_either_sign_and_squares_of_zero_or_none():
    x = torch.rand(8, 16) + 0.5
    minute, small = (draw(TIMES_001, [x], level=level)[0] for level in (0, 1))

    assert (minute < 0).all() and (minute.square() == 0).all()
    assert (small > 0).all() and (small.square() > 0).all() and (1 + small == 1).all()


@pytest.mark.parametrize("text", ["torch.rand(64, 64)", "torch.randn(64, 64)", "torch.rand(9) - 5"])
def test_negated_inputs_are_so_far_below_zero_that_exponentials_are_lost(text):
    x = draw(NEGATED, [eval(text)])[0]

    assert (x < -5).all() and x.exp().norm() > 0


def test_inputs_without_a_mean_are_shifted_where_others_are_centered():
    x = torch.randn(64, 64)

    assert draw(CENTERED, [x])[0].min() > 2
    assert abs(draw(CENTERED, [x + 3])[0].mean().item()) < 1e-3


@pytest.mark.parametrize("name", [TIMES_001, NEGATED, CENTERED])
def test_fp16_stays_in_its_range(name):
    half, wide = torch.rand(8, 16).half(), torch.rand(8, 16)
    usual = distribution.Changer([[wide]])
    narrow = distribution.Changer([[wide]], may_be_small=False)
    by_type = distribution.Changer([[half]])

    ways = [changer.ways(name)[0] for changer in (usual, narrow, by_type)]
    assert ways[0] > ways[1] == ways[2] >= 1
    assert usual.is_delicate(name, {0: 0}) and not narrow.is_delicate(name, {0: 0})


@pytest.mark.parametrize(
    "forward, level",
    [
        ("return torch.expm1(x)", 0),
        ("return torch.exp(x) - 1", 2),
        ("return x * x", 1),
        ("return torch.sqrt(x)", 1),
        ("return F.kl_div(F.log_softmax(x, 1), F.softmax(x.flip(1), 1), reduction='sum')", 2),
    ],
)
def test_small_inputs_are_softened_where_rounding_is_all_that_is_left(
    client, write_problem, forward, level
):
    source = "import torch\nimport torch.nn.functional as F\n"
    found = client.load(write_problem(forward, footer=source + inputs_of("torch.rand(32, 16)")))

    assert TIMES_001 not in found["droppedDistributions"]
    assert client.session._loaded._workloads.levels(TIMES_001) == {0: level}


def test_offset_is_thirty_deviations():
    x = torch.randn(64, 64)

    y = draw(OFFSET, [x], level=1)[0]
    assert (y - x).mean() == pytest.approx(30 * x.std().item(), rel=1e-4)


def test_inputs_that_are_shifted_far_stay_near_each_other():
    x, y = draw(OFFSET, [torch.randn(20, 6), torch.randn(22, 6) * 1.1])

    assert abs(x.mean() - y.mean()) < 2 and x.mean() > 100


def test_a_heavy_tail_is_a_few_elements_far_out_at_places_that_the_seed_decides():
    x = torch.rand(256, 256)

    one, same, other = (draw(HEAVY_TAILED, [x], seed)[0] for seed in (1, 1, 2))

    changed = one != x
    assert 0 < changed.sum() <= 80 and (one > 100).sum() > 16
    # Of any size: bounds, fills of masks, what whole numbers hold.
    assert one.max() > 1e9 and ((one > 1e4) & (one < 1e9)).any()
    assert torch.equal(one, same) and not torch.equal(changed, other != x)


@pytest.mark.parametrize(
    ("forward", "is_far"),
    [("return x * 2", True), ("return x ** 5", False), ("return x.cumsum(1).diff()", False)],
    ids=["any size", "not finite", "rounding decides"],
)
def test_a_tail_reaches_as_far_as_the_reference_bears_it(client, write_problem, forward, is_far):
    client.load(write_problem(forward))

    x = tensors(client, 105, HEAVY_TAILED)["x"]

    assert x.abs().max() > 100 and (x.abs().max() > 1e8) == is_far


def test_ramps_differ_by_axis_and_stay_in_the_range():
    x = torch.rand(32, 32, 32)

    ramp = draw(RAMPS, [x])[0]

    slopes = [
        (ramp.narrow(axis, 31, 1).mean() - ramp.narrow(axis, 0, 1).mean()).item()
        for axis in range(3)
    ]
    assert 0 < slopes[0] < slopes[1] < slopes[2]
    assert ramp.min() >= 0 and ramp.max() <= 1


@pytest.mark.parametrize("name", distribution.DISTRIBUTIONS[:6])
@pytest.mark.parametrize(
    "value",
    [
        torch.randint(0, 9, (8,)),
        torch.rand(8) > 0.5,
        (torch.rand(8, 8) > 0.5).float(),
        torch.zeros(4, 4).masked_fill(torch.ones(4, 4).triu(1).bool(), -math.inf),
    ],
    ids=["indices", "booleans", "float mask", "attention mask"],
)
def test_values_that_are_not_free_stay(name, value):
    assert torch.equal(draw(name, [value])[0], value)


def test_float_labels_are_sorted_with_the_ramp():
    labels = torch.randint(0, 2, (64,)).float() * 2 - 1

    assert torch.equal(draw(RAMPS, [labels])[0], labels.sort().values)


def test_hidden_seeds_belong_to_one_process(write_problem):
    problem = ProblemFile(str(write_problem("return x")))
    one, other = (Workloads(problem, 3, torch.device("cpu")) for _ in range(2))

    assert torch.equal(one.draw_public()[0], other.draw_public()[0])
    for key in (Key(1), Key(3, NEGATED), Key(1, salt=7)):
        assert not torch.equal(one.draw_own(key)[0], other.draw_own(key)[0])
        assert torch.equal(one.draw_own(key)[0], one.draw_own(key)[0])


def test_salts_and_seeds_give_inputs_of_their_own(write_problem):
    workloads = Workloads(ProblemFile(str(write_problem("return x"))), 0, torch.device("cpu"))
    workloads.draw_public()

    keys = [Key(0), Key(1), Key(2), Key(1, salt=1), Key(1, salt=2)]
    drawn = [workloads.draw_own(key)[0] for key in keys]

    assert len({tensor.sum().item() for tensor in drawn}) == len(keys)


@pytest.mark.parametrize("held_ratio", [0.05, 0.0])
@pytest.mark.parametrize("drawn", ["GLOBAL", "GLOBAL.view(16, 32).view(32, 16)"])
def test_the_users_own_tensors_are_not_changed(
    client, write_problem, monkeypatch, held_ratio, drawn
):
    monkeypatch.setattr(workload, "_HELD_RATIO", held_ratio)
    footer = "GLOBAL = torch.rand(32, 16)\n" + inputs_of(drawn)
    client.load(write_problem("return x * 2", footer=footer))

    client.check_all(lambda t: t["x"] * 2)

    assert client.check(lambda t: t["x"] * 2, 1)["isCorrect"]
    public = client.session.prepare({"workload": 0})
    assert client.compare(public, lambda t: (t["x"].abs() <= 1).float() * t["x"] * 2)["isCorrect"]


def test_distributions_on_which_the_reference_is_not_defined_are_dropped_by_name(
    client, write_problem
):
    footer = inputs_of("torch.rand(32, 16)", "torch.rand(32, 16).round()")
    source = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
    source += "class Model(nn.Module):\n    def forward(self, p, q):\n"
    source += "        return F.binary_cross_entropy(p, q)\n" + footer

    found = client.load(write_problem(source=source))

    names = set(found["droppedDistributions"]) - set(distribution.UNTYPICAL)
    assert names == {TIMES_3, NEGATED, OFFSET, HEAVY_TAILED, CENTERED, distribution.DIRECTED}
    assert "between 0 and 1" in found["droppedDistributions"][NEGATED]
    assert client.session.prepare({"workload": 5, "distribution": NEGATED})["dropped"]


def test_a_milder_form_comes_before_a_distribution_is_dropped(client, write_problem):
    path = write_problem("return torch.cumprod(x, 1)", footer=inputs_of("torch.rand(16, 1024)"))

    dropped = client.load(path)["droppedDistributions"]

    # Products of 1,024 factors overflow at three times their size, and not at 1.3 times.
    assert not {TIMES_3, OFFSET} & set(dropped)

    def early_stop(t):
        y = torch.cumprod(t["x"], 1)
        y[:, 64:] = 0
        return y

    assert client.check(early_stop)["isCorrect"]
    assert not client.check(early_stop, 6, OFFSET)["isCorrect"]


def test_workloads_that_were_evicted_are_computed_again(client, write_problem, monkeypatch):
    monkeypatch.setattr(MemoryBudget, "most", lambda self, kept: 0)
    client.load(write_problem("return torch.tanh(x)"))
    shared = client.session.prepare({"workload": 1})
    values = {}
    client.compare(shared, lambda t: values.update(t) or torch.tanh(t["x"]))

    for seed in (2, 3, 0):
        assert client.check(lambda t: torch.tanh(t["x"]), seed)["isCorrect"]

    evicted = {"inputs": [], "prepared": shared["prepared"]}
    answer = client.compare(evicted, lambda _: torch.tanh(values["x"]))
    assert answer["isCorrect"]
    again = client.session.prepare({"workload": 1})
    assert again["prepared"] == shared["prepared"]


def test_several_prepared_workloads_live_at_once(client, write_problem):
    client.load(write_problem("return x + 1"))
    shared = [client.session.prepare({"workload": seed}) for seed in (1, 2)]

    for one in shared:
        assert client.compare(one, lambda t: t["x"] + 1)["isCorrect"]
    crossed = {"inputs": shared[0]["inputs"], "prepared": shared[1]["prepared"]}
    assert not client.compare(crossed, lambda t: t["x"] + 1)["isCorrect"]


def test_contents_keep_their_numbers_from_candidate_to_candidate(client, write_problem):
    client.load(write_problem("return self.fc(x)", init="self.fc = nn.Linear(16, 16)"))

    def numbers(**request):
        inputs = client.session.prepare(request)["inputs"]
        return {entry["name"]: entry.get("content") for entry in inputs}

    public, hidden = numbers(workload=0), numbers(workload=1)

    assert numbers(workload=0) == public
    assert numbers(workload=1) == hidden
    assert public["x"] != hidden["x"]
    assert public["fc_weight"] != hidden["fc_weight"]
    assert numbers(workload=1000, salt="77")["x"] is None


def test_a_fresh_workload_is_judged_once_and_forgotten(client, write_problem):
    client.load(write_problem("return F.gelu(self.fc(x))", init="self.fc = nn.Linear(16, 16)"))
    client.session.prepare({"workload": 0})

    def candidate(t):
        y = (t["x"].double() @ t["fc_weight"].double().T + t["fc_bias"]).float()
        return torch.nn.functional.gelu(y)

    fresh = client.session.prepare({"workload": 1000, "salt": "12345678901234567890"})
    assert fresh["oracle"] == "fp64"
    assert client.compare(fresh, candidate)["isCorrect"]
    assert not client.compare(fresh, lambda t: candidate(t) * 1.001)["isCorrect"]
    assert client.compare(fresh, candidate, forgets=True)["isCorrect"]

    # What is compared without a handle is still the public workload.
    assert client.check(candidate)["isCorrect"]
    with pytest.raises(Exception, match="no workload is prepared"):
        client.compare(fresh | {"inputs": []}, lambda t: torch.zeros(32, 16))


def test_half_of_a_heavy_tail_is_never_taken_for_all_of_it():
    for seed in range(64):
        inputs = [torch.rand(256, 256), torch.rand(256, 256)]
        x, z = (value.reshape(-1).double() for value in draw(HEAVY_TAILED, inputs, seed))
        for terms in (x, x.square(), (x - z).square()):
            assert abs(terms[::2].mean() / terms.mean() - 1) > 0.05
