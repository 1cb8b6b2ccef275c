# SPDX-License-Identifier: Apache-2.0
"""Mixed workloads around numbers that stand in a program and not in its problem."""

import math
import os
import random

import mixed as drawn
import pytest
import torch
from mtmc_reference import around
from mtmc_reference.distribution import MIXED
from mtmc_reference.mixture import Mixture
from mtmc_reference.program_numbers import chosen, known_numbers, own_numbers

# The same for every change, so that a failure is the change's; another one draws others.
_SEED = os.environ.get("MTMC_AROUND_SEED", "20261130")
# Numbers of such workloads, as an evaluation asks for them.
_NUMBERS = range(617, 625)
_MODELS = 4


def prepared(client, number, numbers, salt="7"):
    request = {"workload": number, "distribution": MIXED, "salt": salt, "numbers": numbers}
    return client.session.prepare(request)


def went(number, value, tensor, kind="inputs", seed=1):
    """What a tensor becomes in a workload of that number; None where it goes another way."""
    way = getattr(around.plan(number, value, seed), kind)
    if way is None:
        return None
    tensor = tensor.clone()
    way(tensor, torch.Generator().manual_seed(number + 1000 * seed))
    return tensor


def all_that_went(value, tensor, kind="inputs"):
    every = [went(n, value, tensor, kind, seed) for n in _NUMBERS for seed in range(4)]
    return [x for x in every if x is not None]


@pytest.mark.parametrize("value", [1e-4, 0.7, 88.0, 1e4])
def test_floats_are_next_to_the_number_and_beyond_it_on_both_sides(value):
    found = all_that_went(value, torch.randn(24, 40))

    value = torch.tensor(value).item()
    for side in (value, -value):
        # Relative distance to the number, of either sign.
        apart = torch.stack([x.double() / side - 1 for x in found])
        assert (apart.abs() < 1e-3).any() and (apart == 0).any()
        assert any((x.double() / side).amin() > 0.99 for x in found), "no tensor is wholly beyond"
        assert ((apart > 1) & (apart < 40)).any()
    assert any(x.abs().max() < value for x in found)


def test_so_many_elements_stand_out_and_so_many_places_are_left():
    found = all_that_went(11.0, torch.randn(24, 40))

    def counts(x):
        return {int(c) for c in (x > 0).sum(1)}

    assert any({10, 11, 12} <= counts(x) and len(counts(x)) <= 5 for x in found)
    left = [(x != 0) for x in found]
    assert any(x[:, :11].all() and not x[:, 12:].any() for x in left)
    assert any(not x[:, :11].any() and x[:, 12:].all() for x in left)
    assert any((x[:, :11] == x[:, :1]).all() for x in found)


def test_a_count_is_met_along_any_axis_and_of_a_vector():
    # More than either of the first two axes, and fewer than the last or all.
    found = all_that_went(7.0, torch.randn(3, 5, 9)) + all_that_went(7.0, torch.randn(200))
    assert all(x.isfinite().all() for x in found)
    masks = all_that_went(7.0, torch.rand(16, 30) < 0.5, "masks")
    assert {6, 7, 8} <= {int(c) for x in masks for c in x.sum(1)}
    numbers = all_that_went(7.0, torch.randint(0, 3, (50,)), "numbers")
    found = [set(x.tolist()) for x in numbers]
    # Beside it, steps of it, and steps of as many bits.
    assert any({6, 7, 8} <= x for x in found)
    assert any(x == {0, 1, 7, 8} for x in found) and any(x == {0, 1, 128, 129} for x in found)


def test_whole_numbers_go_in_steps_of_what_is_no_count():
    found = [set(x.tolist()) for x in all_that_went(65536.0, torch.randint(0, 3, (50,)), "numbers")]
    assert found and all(x == {0, 1, 65536, 65537} for x in found)
    assert not all_that_went(6.5, torch.randint(0, 3, (50,)), "numbers")


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 1, 5), (2, 300)])
@pytest.mark.parametrize("value", [3.0, 1e-30, 1e30, 2.5, 4096.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_ways_are_for_any_shape_and_number(shape, value, dtype):
    for fill in (torch.randn(shape), torch.zeros(shape)):
        for kind in ("inputs", "vectors", "matrices"):
            every = all_that_went(value, fill.to(dtype), kind)
            assert all(x.isfinite().all() and x.shape == shape for x in every)


def test_a_number_goes_all_ways_in_turn():
    """With one number that is no count, each workload does another thing."""
    x = torch.randn(16, 16)
    kinds = set()
    for number in _NUMBERS:
        y = went(number, 0.3, x)
        moved = y - x
        kinds.add(
            "moved" if moved.std() < 1e-5 else "scaled" if (y / x).std() < 1e-4 * (y / x).mean() else "other"
        )
    assert kinds >= {"moved", "other"}


def test_names_of_mixtures_say_which_they_are():
    for mixture in (Mixture(417), Mixture(617, 1e-4), Mixture(618, 40.0), Mixture(619, 1 / 3)):
        assert Mixture.of(mixture.name("a")) == mixture


def test_numbers_of_the_problem_are_not_the_programs_own(client, write_problem):
    path = write_problem("return torch.clamp(x * 3, -7.5, 7.5).view(16, 32).sum(1)")
    graph = client.load(path)["graph"]

    found = own_numbers([3, 7.5, 16, 32, 512, 1, 2, 40, 64, 1e-4, 0, math.inf, math.nan], known_numbers(graph))

    assert found == [1e-4, 40.0, 64.0]
    turns = [chosen(found, turn, seed=5) for turn in range(3)]
    assert sorted(turns) == found and turns[2] == 64.0
    assert chosen([], 0, seed=5) == 0.0


# Programs that are right as long as nothing is beyond a number of theirs.
_ASSUMED = {
    "a clamp": (37.0, lambda x, h: x.clamp(-37, 37) * h),
    "a pad": (1e4, lambda x, h: torch.maximum(x, torch.tensor(-1e4)) * h),
    "what is small": (1e-5, lambda x, h: torch.where(x.abs() < 1e-5, 0.0, x) * h),
    "a learned number": (19.0, lambda x, h: x * h.clamp(-19, 19)),
    "a capacity": (23.0, lambda x, h: torch.where((x > 0).cumsum(1) > 23, 0.0, x) * h),
}


@pytest.mark.parametrize("what", _ASSUMED)
def test_what_a_program_assumes_of_a_number_is_met(client, write_problem, what):
    value, program = _ASSUMED[what]
    footer = "\ndef get_inputs():\n    return [torch.rand(32, 40) * 3 - 1.5]\n\ndef get_init_inputs():\n    return []\n"
    path = write_problem("return x * self.h", init="self.h = nn.Parameter(torch.tensor(1.5))", footer=footer)
    client.load(path)
    refused = []
    for number in _NUMBERS:
        for wanted, kind in ((True, lambda x, h: x * h), (False, program)):
            answer = client.compare(
                prepared(client, number, [value]), lambda t, kind=kind: kind(t["x"], t["h"])
            )
            if wanted:
                assert answer["isCorrect"], answer["message"]
            elif not answer["isCorrect"]:
                refused.append(answer["message"])
    assert any(f"much is about {value:g}, which its text has" in message for message in refused)


def test_honest_programs_pass_whatever_their_numbers(client, tmp_path):
    chance, judged = random.Random(f"{_SEED} numbers"), 0
    for index in range(_MODELS):
        model = drawn.Mixed(f"{_SEED} {index}").loaded_from(client, tmp_path / "problem.py")
        names = {**model.targets, **{name: name for name in model.names}}
        numbers = [10 ** chance.uniform(-6, 6), float(chance.randint(2, 60)), 10 ** chance.uniform(-2, 2)]
        for number in _NUMBERS:
            shared = prepared(client, number, numbers, salt=str(index + 1))
            if "dropped" in shared:
                continue

            def answer(tensors, honest, model=model, names=names):
                seen = {key: tensors[at].clone() for key, at in names.items()}
                return model.answers(drawn.HONEST[honest](model, seen))

            for honest in drawn.HONEST:
                found = client.compare(shared, lambda t, honest=honest: answer(t, honest))
                judged += 1
                assert found["isCorrect"], f"{honest} {numbers}: {found['message']}\n{model.source}"
    assert judged >= 3 * 4 * _MODELS


def test_what_was_made_for_one_program_is_forgotten_with_the_next(client, write_problem):
    path = write_problem("return x * self.h", init="self.h = nn.Parameter(torch.randn(16))")
    client.load(path)
    loaded = client.session._loaded

    def known():
        states = loaded._states
        return (
            [key for key in loaded._prepared._by_key if key.salt],
            [*states._mixed, *states._settled, *states._kept.states()],
            list(loaded._shared_states._by_state),
            list(loaded._workloads._changer._ways) + list(loaded._workloads._levels._levels),
        )

    before = known()
    for number in _NUMBERS:
        prepared(client, number, [37.0], salt="1")
    assert len(known()[0]) == len(_NUMBERS)
    prepared(client, 617, [1e-3], salt="2")
    after = known()
    assert [key.around for key in after[0]] == [1e-3]
    for names, first in zip(after[1:], before[1:]):
        assert {name for name in names if name not in first} <= {"mixed 617 0.001", f"{MIXED} 617 0.001"}
