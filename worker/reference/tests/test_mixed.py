# SPDX-License-Identifier: Apache-2.0
"""Inputs and parameters that go different ways at once."""

import os

import mixed as drawn
import pytest
import torch
from mtmc_reference import distribution, drawing, mixed, patterns
from mtmc_reference.distribution import MIXED
from mtmc_reference.graph_domain import Uses
from mtmc_reference.domain import domain_of
from mtmc_reference.workload import Key

# The same for every change, so that a failure is the change's; another one draws others.
_SEED = os.environ.get("MTMC_MIXED_SEED", "20261128")
_MODELS = 6
# Workloads that are mixed, one more than take turns.
_NUMBERS = range(317, 341)


def changed(inputs, number, seed=1):
    changer = distribution.Changer([inputs], seed_of=lambda name: seed)
    levels = dict.fromkeys(changer.ways(f"{MIXED} {number}"), 0)
    return changer.apply(f"{MIXED} {number}", [x.clone() for x in inputs], levels, seed + number)


def test_programs_that_two_tensors_decide_are_found_and_honest_ones_pass(client, tmp_path):
    programs = accepted = unmixed = 0
    for number in range(_MODELS):
        model, found = drawn.drawn(_SEED, number, client, tmp_path / "problem.py")
        assert not found.refused, model.source
        programs += len(found.programs)
        accepted += sum(not by for by in found.refused_by)
        unmixed += sum(all(name == MIXED for name in by) for by in found.refused_by)
    assert programs >= 40
    # What decides over whole tensors has hundreds of pairs, of which each workload meets one.
    assert accepted < 0.8 * unmixed


def test_inputs_go_apart():
    inputs = [torch.randn(40, 12), torch.randn(40, 12)]
    pairs = [changed(inputs, number, seed) for seed in range(4) for number in _NUMBERS]
    sizes = [[x.square().mean().sqrt().item() for x in pair] for pair in pairs]

    assert any(x > 30 > 3 > z for x, z in sizes) and any(z > 30 > 3 > x for x, z in sizes)
    assert any(x == 0 < z for x, z in sizes) and any(z == 0 < x for x, z in sizes)


def test_lines_of_one_tensor_go_apart():
    inputs = [torch.randn(64, 12), torch.randn(64, 12)]
    # Every third workload is by lines alone.
    numbers = [number for number in _NUMBERS if number % 3 == 0]
    pairs = [changed(inputs, number, seed) for seed in range(4) for number in numbers]

    assert any((~x.any(1) & (z.abs().amax(1) > 100)).any() for x, z in pairs)
    for axis in (0, 1):
        assert any((x == inputs[0]).all(axis).any() and not (x == inputs[0]).all() for x, _ in pairs)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (7, 1), (1, 7), (3, 1, 5), (2, 3, 4, 5)])
@pytest.mark.parametrize("is_wide", [True, False])
def test_ways_are_for_any_shape(shape, is_wide):
    groups, lines = mixed.floats(is_wide, True)
    for turn, (_, way) in enumerate(each for group in [*groups, lines, lines, lines] for each in group):
        for tensor in (torch.randn(shape), torch.zeros(shape), torch.randn(shape).half()):
            generator = torch.Generator().manual_seed(turn)
            way(tensor, generator)
            assert tensor.isfinite().all()


def test_the_same_seed_mixes_the_same():
    inputs = [torch.randn(16, 8), torch.randint(0, 5, (16,)), torch.rand(16, 6) < 0.5]

    for number in _NUMBERS:
        for x, y in zip(changed(inputs, number), changed(inputs, number)):
            assert torch.equal(x, y)
    assert any(
        not torch.equal(x, y)
        for number in _NUMBERS
        for x, y in zip(changed(inputs, number, seed=1), changed(inputs, number, seed=2))
    )


@pytest.mark.parametrize("name", ["zero", "moved", "one value", "far", "small"])
def test_no_kind_of_way_is_left_out_by_chance(name):
    x, shows = torch.randn(40, 12), {
        "zero": lambda y: not y.any(),
        "moved": lambda y: y.mean().abs() > 3 and y.std() < 2,
        "one value": lambda y: y.any() and (y == y[:, :1]).all(),
        "far": lambda y: y.square().mean().sqrt() > 4,
        "small": lambda y: y.any() and y.abs().max() < 0.6,
    }  # fmt: skip
    groups, _ = mixed.floats(True, False)
    generator = torch.Generator().manual_seed(1)

    def made(way):
        y = x.clone()
        way(y, generator)
        return y

    assert any(shows[name](made(drawing.one_of(group, generator))) for group in groups for _ in range(3))


def test_pairs_of_nodes_are_loops_rings_and_hubs():
    edges = torch.randint(0, 20, (2, 60))
    groups = patterns.numbers(edges, 0, 19)
    found = []
    for turn in range(3 * len(groups)):
        pairs = edges.clone()
        generator = torch.Generator().manual_seed(turn)
        drawing.one_of(groups[turn % len(groups)], generator)(pairs, generator)
        assert pairs.min() >= 0 and pairs.max() <= 19
        found.append(pairs)

    assert any((e[0] == e[1]).all() for e in found)
    assert any((((e[1] - e[0]) % 20) == 1).all() and len(e[0].unique()) == 20 for e in found)
    assert any((e[1] == e[1, 0]).all() and len(e[0].unique()) > 5 for e in found)
    assert any((e == e[:, :1]).all() for e in found)


def test_groups_are_long_and_empty_and_so_is_the_last():
    begins = torch.arange(0, 300, 30)
    [(_, way)] = patterns.offsets(300)
    found = []
    for turn in range(60):
        offsets = begins.clone()
        way(offsets, torch.Generator().manual_seed(turn))
        sizes = torch.cat([offsets, torch.tensor([300])]).diff()
        assert offsets[0] == 0 and (sizes >= 0).all()
        found.append(sizes)

    assert any(sizes.max() > 255 for sizes in found)
    assert any(sizes[-1] == 0 for sizes in found) and any((sizes == 0).sum() > 3 for sizes in found)


def test_rows_of_a_small_mask_have_one_none_all_or_a_gap():
    found = set()
    for turn in range(40):
        mask = torch.rand(4, 16) < 0.7
        generator = torch.Generator().manual_seed(turn)
        drawing.one_of(patterns.masks(), generator)(mask, generator)
        found |= {tuple(row) for row in mask.int().tolist()}

    counts = {sum(row) for row in found}
    assert {0, 1, 15, 16} <= counts
    assert tuple([1] + [0] * 14 + [1]) in found


def test_numbers_stay_in_their_domain():
    labels = torch.randint(0, 7, (30,))
    domain = domain_of([labels], Uses(legal=(0, 6), special=(-100,), is_restricted=True))

    for turn, group in enumerate(patterns.others(labels, domain) * 3):
        y, generator = labels.clone(), torch.Generator().manual_seed(turn)
        drawing.one_of(group, generator)(y, generator)
        assert set(y.tolist()) <= {-100, *range(7)}


def test_what_the_reference_refuses_stays_or_goes_milder_by_itself(client, write_problem):
    footer = """
def get_inputs():
    return [torch.rand(32, 16) + 0.5, torch.randn(32, 16)]

def get_init_inputs():
    return []
"""
    source = """
import torch

class Model(torch.nn.Module):
    def forward(self, x, z):
        y = torch.log(x) + z
        return y
"""
    client.load(write_problem(source=source + footer))
    workloads, far = client.session._loaded._workloads, 0
    for number in _NUMBERS:
        answer = client.check(lambda t: t["x"].log() + t["z"], number, MIXED)
        assert answer is None or answer["isCorrect"]
        x, z = workloads.draw_own(Key(number, MIXED))
        assert (x > 0).all()
        far += bool(z.abs().max() > 50)
    assert far >= 2


def test_a_model_that_takes_long_has_fewer_of_them(client, write_problem, monkeypatch):
    monkeypatch.setattr("mtmc_reference.judge._MIXED_SECONDS", 0.0)
    client.load(write_problem("return x + 1"))
    answers = [
        client.session.prepare({"workload": number, "distribution": MIXED}) for number in _NUMBERS
    ]

    assert all("takes too long" in answer["dropped"] for answer in answers)


def test_states_mix_what_tensors_have(client, write_problem):
    init = "self.a = nn.Linear(16, 16); self.b = nn.Linear(16, 16); self.t = nn.Parameter(torch.tensor(0.7))"
    client.load(write_problem("return self.b(torch.relu(self.a(x)) * self.t)", init=init))
    loaded = client.session._loaded
    public = {name: p.detach().clone() for name, p in loaded._model.named_parameters()}
    zero, kept = set(), set()
    for number in _NUMBERS:
        client.session.prepare({"workload": number, "distribution": MIXED})
        with loaded._execution.in_state(loaded._states.of(Key(number, MIXED))):
            now = dict(loaded._model.named_parameters())
            same = {name for name in public if torch.equal(now[name], public[name])}
            lines = {name: p.reshape(p.shape[0] if p.dim() else 1, -1) for name, p in now.items()}
            none = {name for name, each in lines.items() if (each == 0).all(1).any()}
        zero |= none if len(none) < len(public) else set()
        kept |= same if len(same) < len(public) else set()

    assert len(zero) >= 3 and len(kept) >= 3
    assert all(torch.equal(p, public[name]) for name, p in loaded._model.named_parameters())


def test_a_state_of_zeros_goes_the_ways_of_ordinary_floats():
    inputs = [torch.randn(16, 40), torch.zeros(16, 2, 2)]
    found = [changed(inputs, number, seed)[1] for seed in range(4) for number in _NUMBERS]

    assert any(((z[..., 0] != 0) & (z[..., 1] == 0)).any() for z in found)
    assert any(z.abs().max() > 100 for z in found) and any(0 < z.abs().max() < 0.1 for z in found)
    assert not any(z.isnan().any() for z in found)


def test_squares_are_paths_sometimes():
    x = torch.randn(3, 12, 12)
    mixed.path(x, torch.Generator().manual_seed(3))
    near = x < 3
    assert (near.sum((-1, -2)) == 11).all() and (near.sum(-1) <= 1).all() and (near.sum(-2) <= 1).all()
    # Through all of them, so that the last is come to in eleven steps and not before.
    reached = torch.linalg.matrix_power(near.float(), 11)
    assert reached.sum() == 3 and torch.linalg.matrix_power(near.float(), 12).sum() == 0
    assert not mixed.squares(torch.randn(3, 12, 8)) and mixed.squares(torch.randn(12, 12))


def test_masks_are_mazes_sometimes():
    mask, found = torch.zeros(8, 9, dtype=torch.bool), set()
    for seed in range(60):
        drawing.one_of(patterns.masks(), torch.Generator().manual_seed(seed * 7919))(mask, torch.Generator().manual_seed(seed))
        if not (mask.all() or not mask.any()):
            found.add(longest_way(mask))
    assert max(found) >= 40


def longest_way(mask):
    """Steps from the first open place to the one that is farthest."""
    reached = torch.zeros_like(mask)
    reached.view(-1)[mask.view(-1).to(torch.uint8).argmax()] = True
    for steps in range(mask.numel()):
        wide = torch.nn.functional.pad(reached, (1, 1, 1, 1))
        near = reached | wide[2:, 1:-1] | wide[:-2, 1:-1] | wide[1:-1, 2:] | wide[1:-1, :-2]
        if torch.equal(near & mask, reached):
            return steps
        reached = near & mask
    return mask.numel()


def test_whole_numbers_are_all_beyond_what_was_seen():
    seen = torch.randint(0, 50, (40,))
    groups = patterns.others(seen, domain_of([seen, seen], Uses()))
    found = []
    for seed in range(8):
        x = seen.clone()
        drawing.one_of(groups[-1], torch.Generator().manual_seed(seed))(x, torch.Generator().manual_seed(seed))
        found.append(x.min().item())
    assert min(found) > seen.max() and max(found) > 1000
    assert len(patterns.others(seen, domain_of([seen, seen], Uses(is_restricted=True)))) < len(groups)
