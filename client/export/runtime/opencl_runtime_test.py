# SPDX-License-Identifier: Apache-2.0
"""Plans on the host's OpenCL device: right, on PyTorch's own memory, and waited for."""

import concurrent.futures
import weakref

import exported
import pytest
import torch

cl = pytest.importorskip("pyopencl")

_SOURCE = """
__kernel void scale(__global const float* x, __global float* y, float factor) {
  y[get_global_id(0)] = x[get_global_id(0)] * factor;
}
"""
_SIZE = 1 << 16


@pytest.fixture
def file():
    return exported.module("tensors", "opencl_runtime")


def made(file, size=_SIZE, source=_SOURCE):
    """A program of one input, and a function that launches the scaling by 2."""
    program = file._MtmcProgram(source, {}, [(torch.Size([size]), torch.float32)], replays=False, apart=[])
    factor = file._mtmc_scalar(2.0, torch.float32)
    grid, block = (max(size // 64, 1), 1, 1), (min(size, 64), 1, 1)
    step = file._MtmcKernel(program, "scale", grid, block, 0, [None, None, factor])
    return program, step


def chain(program, step, length):
    """A plan whose scratch lives until it was waited for."""

    def plan(device, x):
        values = [x]
        for _ in range(length):
            values.append(torch.empty(x.shape, device=device))
            step(values[-2], values[-1])
        program.wait()
        return [values[-1]]

    return plan


@pytest.mark.parametrize("takes_addresses", [True, False])
def test_a_chain_of_kernels_runs_in_order(file, takes_addresses):
    program, step = made(file)
    program.function("scale")
    assert program.takes_addresses, "of this host's PoCL the shorter way is known to be right"
    program.takes_addresses = takes_addresses

    for _ in range(20):
        # Other memory each time, some of it what was used before.
        x = torch.randn(_SIZE)
        (y,) = program.run(chain(program, step, 10), [x], [])
        assert torch.equal(y, x * 1024)


def test_each_kernel_of_a_plan_is_waited_for_once(file):
    program, step = made(file)
    plan = chain(program, step, 5)
    program.run(plan, [torch.zeros(_SIZE)], [])
    waits = []
    finish = program.library.clFinish

    class Counting:
        clEnqueueNDRangeKernel = program.library.clEnqueueNDRangeKernel

        @staticmethod
        def clFinish(queue):
            waits.append(queue)
            return finish(queue)

    program.library = Counting
    program.run(plan, [torch.zeros(_SIZE)], [])

    assert len(waits) == 1


def test_tensors_live_until_their_kernels_have_ended(file):
    program, step = made(file)
    alive = []

    def plan(device, x):
        # As where a compiler has taken the plan apart: it forgets what it does not need.
        y = torch.empty(_SIZE)
        seen = weakref.ref(y)
        step(x, y)
        del y
        alive.append(seen() is not None)
        program.wait()
        alive.append(seen() is not None)
        return []

    program.run(plan, [torch.zeros(_SIZE)], [])

    assert alive == [True, False]


def test_nothing_runs_after_a_plan_has_failed(file):
    program, step = made(file)
    y = torch.empty(_SIZE)

    def plan(device, x):
        step(x, y)
        raise ValueError("from the plan")

    x = torch.randn(_SIZE)
    with pytest.raises(ValueError, match="from the plan"):
        program.run(plan, [x], [])

    assert not program._in_use and torch.equal(y, x * 2)


def test_a_launch_that_cannot_be_is_said(file):
    program = file._MtmcProgram(_SOURCE, {}, [(torch.Size([64]), torch.float32)], replays=False, apart=[])
    factor = file._mtmc_scalar(2.0, torch.float32)
    step = file._MtmcKernel(program, "scale", (1, 1, 1), (1 << 20, 1, 1), 0, [None, None, factor])

    with pytest.raises(RuntimeError, match="launch of scale failed: OpenCL status -54"):
        program.run(chain(program, step, 1), [torch.zeros(64)], [])


def test_a_part_of_a_tensor_and_a_transposed_one_are_read_where_they_are(file):
    program, step = made(file, size=64)
    plan = chain(program, step, 1)
    whole = torch.randn(200)

    assert torch.equal(program.run(plan, [whole[3:67]], [])[0], whole[3:67] * 2)
    assert torch.equal(program.run(plan, [whole[::3][:64]], [])[0], whole[::3][:64] * 2)


def test_several_threads_take_turns(file):
    program, step = made(file)
    plan = chain(program, step, 4)
    inputs = [torch.full((_SIZE,), float(n)) for n in range(16)]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda x: program.run(plan, [x], [])[0], inputs))

    assert all(torch.equal(y, x * 16) for x, y in zip(inputs, results))
