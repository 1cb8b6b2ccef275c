# SPDX-License-Identifier: Apache-2.0
"""The operator that stands for a program where PyTorch compiles, or may want gradients."""

import itertools
import sys

import exported
import pytest
import torch

_numbers = itertools.count()


class Program:
    """Runs a plan as the real ones do: without gradients."""

    calls = 0

    def run(self, plan, inputs, targets):
        self.calls += 1
        with torch.no_grad():
            return plan(torch.device("cpu"), *inputs, *targets)


def plan(device, x, w, target):
    target.copy_(target + x.sum(0))
    return [x * w, (x > 0).sum(1)]


RESULTS = [(torch.Size([3, 4]), torch.float32), (torch.Size([3]), torch.int64)]


@pytest.fixture
def file():
    return exported.module("operator")


def made(file, program, plan=plan, results=RESULTS):
    return file._MtmcOperator(f"test_{next(_numbers)}", program, plan, results)


def tensors(requires_grad=False):
    x, w = torch.randn(3, 4), torch.randn(4, requires_grad=requires_grad)
    return x, w, torch.zeros(4)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_whole_graph_holds_it(file, backend, requires_grad):
    program = Program()
    operator = made(file, program)
    x, w, target = tensors(requires_grad)

    @torch.compile(fullgraph=True, backend=backend)
    def caller(x, w, target):
        a, b = operator([x.exp(), w], [target])
        return a + 1, b

    for times in (1, 2):
        a, b = caller(x, w, target)
        assert torch.allclose(a, x.exp() * w + 1) and torch.equal(b, torch.full((3,), 4))
        assert torch.allclose(target, times * x.exp().sum(0)) and not target.requires_grad
    assert program.calls == 2
    if requires_grad:
        with pytest.raises(RuntimeError, match="no backward pass"):
            a.sum().backward()


def test_a_compiler_that_gave_up_does_not_trace_the_plan(file):
    frames = []

    def plan(device, x):
        torch._dynamo.graph_break()
        frames.append(sys._getframe().f_code.co_name)
        return [x * 2]

    operator = made(file, Program(), plan, [(torch.Size([3]), torch.float32)])

    @torch.compile(backend="eager")
    def caller(x):
        torch._dynamo.graph_break()
        return operator.run([x], [])[0] + 1

    for _ in range(2):
        assert torch.equal(caller(torch.ones(3)), torch.full((3,), 3.0))
    assert frames == ["plan", "plan"]


def test_gradients_are_refused_when_they_are_asked_for(file):
    operator = made(file, Program())
    x, w, target = tensors(requires_grad=True)
    x.requires_grad_()

    a, b = operator([x, w], [target])

    assert a.requires_grad and not b.requires_grad and not target.requires_grad
    with pytest.raises(RuntimeError, match="torch.no_grad"):
        a.sum().backward()
    assert x.grad is None and w.grad is None


def test_they_are_wanted_only_where_pytorch_records(file):
    x = torch.ones(1, requires_grad=True)

    assert file._mtmc_wants_gradients([torch.ones(1), x])
    assert not file._mtmc_wants_gradients([torch.ones(1)])
    with torch.no_grad():
        assert not file._mtmc_wants_gradients([x])


def test_results_that_are_inputs_or_each_other_become_copies(file):
    shapes = [(torch.Size([3]), torch.float32)] * 3
    x = torch.ones(3)
    operator = made(file, Program(), lambda device, x: [x, x, x.view(3)], shapes)

    results = operator([x], [])

    assert all(torch.equal(y, x) for y in results)
    assert len({tensor.data_ptr() for tensor in (x, *results)}) == 4


def test_a_program_is_one_operator_in_all_files():
    first, second = exported.module("operator"), exported.module("operator")
    digest = f"test_{next(_numbers)}"
    a = first._MtmcOperator(digest, Program(), plan, RESULTS)
    b = second._MtmcOperator(digest, Program(), plan, RESULTS)
    x, w, target = tensors()

    assert all(map(torch.equal, a([x, w], [target]), b([x, w], [target])))
