# SPDX-License-Identifier: Apache-2.0
"""Guards of a graph, what stands before them, and tensors of their size."""

import pytest
import torch
from mtmc_reference import guards
from mtmc_reference.distribution import TIMES_001, Changer
from mtmc_reference.graph_domain import GraphDomain
from mtmc_reference.graph_numbers import GraphNumbers

_FORWARD = """
h = self.l(x)
h = h / (h.norm(dim=-1, keepdim=True) + 1e-6)
return h @ self.w + F.layer_norm(self.w, (16,), eps=1e-5)[0] * self.o
"""
_INIT = """
self.l = nn.Linear(16, 16)
self.w = nn.Parameter(torch.randn(16, 16))
self.o = nn.Parameter(torch.ones(16))
"""


def test_guards_stand_behind_what_may_be_as_small(client, write_problem):
    graph = client.load(write_problem(_FORWARD, init=_INIT))["graph"]
    names = {entry.get("target") or entry["name"]: entry["name"] for entry in graph["inputs"]}
    domain = GraphDomain(graph)

    behind = guards.sizes_behind(domain)

    assert set(guards.guards(domain)) == {1e-6, 1e-5}
    found = {target: sorted(behind[name]) for target, name in names.items()}
    norm = [1e-6]
    assert found == {"x": norm, "l.weight": norm, "l.bias": norm, "w": [1e-5**0.5], "o": []}


def test_what_has_its_guard_beside_a_norm_has_no_root_of_it(client, write_problem):
    text = "F.pairwise_distance(x, x.flip(-1)) + F.cosine_similarity(x, x.flip(0), dim=-1)"
    graph = client.load(write_problem(f"return {text}"))["graph"]

    assert set(guards.sizes(GraphDomain(graph))) == {1e-6, 1e-8}


@pytest.mark.parametrize("shape", [(), (1,), (7,), (5, 9), (2, 3, 4)])
@pytest.mark.parametrize("fill", [None, 0.0])
def test_tensors_become_as_large_as_a_guard(shape, fill):
    generator = torch.Generator().manual_seed(1)
    ratios = []
    for number in range(60):
        torch.manual_seed(number)
        x = torch.randn(shape) if fill is None else torch.full(shape, fill)
        guards.sized([1e-8])(x, generator)
        ratios.append(x.norm().item() / 1e-8)
    assert all(0 < ratio < 60 for ratio in ratios)
    assert min(ratios) < 0.5 and max(ratios) > 1


def test_lines_are_as_large_as_a_guard_or_its_root():
    rows = guards.sized_lines([1e-8, 1e-4])(torch.randn(200, 12), torch.Generator().manual_seed(1))
    sizes = rows.square().mean(1).sqrt()
    assert ((sizes < 3e-8) & (sizes > 1e-10)).any() and ((sizes < 3e-4) & (sizes > 1e-6)).any()


def test_fp16_inputs_are_as_large_as_the_root_of_a_guard_that_it_has():
    x = torch.randn(32, 40).half()
    for guard, is_there in ((1e-5, True), (1e-8, False)):
        changer = Changer([[x]], numbers=GraphNumbers((guard,), (guard**0.5,)))
        y = changer.apply(TIMES_001, [x.clone()], {0: 0}, 1)[0].float()
        sizes = y.square().mean(1)
        assert ((sizes < 3 * guard) & (sizes > 0.1 * guard)).any() == is_there
    assert not Changer([[x]], numbers=GraphNumbers((1e-5,), (1e-5**0.5,)), may_be_small=False).is_delicate(TIMES_001, {0: 0})
