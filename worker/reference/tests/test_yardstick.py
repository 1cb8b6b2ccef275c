# SPDX-License-Identifier: Apache-2.0
"""The kernel that every process times; whether it says the truth is measured on a GPU."""

import torch

from mtmc_reference import yardstick
from mtmc_reference.cuda_kernel import compile_kernels


class _Launched:
    def __init__(self):
        self.arguments = []

    def launch(self, blocks, threads, arguments):
        self.arguments.append((blocks * threads, arguments))


def test_its_data_lies_in_the_arena_at_changing_places():
    kernel = _Launched()
    arena = torch.empty(32 << 20, dtype=torch.uint8)
    own = yardstick.Yardstick(kernel, arena)

    for _ in range(200):
        own.launch()

    for threads, (x, y) in kernel.arguments:
        start = arena.data_ptr()
        assert start <= x and x + 4 * threads <= y and y + 4 * threads <= start + arena.numel()
    assert len({x for _, (x, _) in kernel.arguments}) > 150


def test_a_cpu_has_none():
    assert yardstick.find(torch.device("cpu")) is None


def test_its_text_compiles():
    image, names = compile_kernels(yardstick.source(), ["mtmc_yardstick"], "sm_90")

    assert image.startswith(b"\x7fELF")
    assert names["mtmc_yardstick"] == b"mtmc_yardstick"
