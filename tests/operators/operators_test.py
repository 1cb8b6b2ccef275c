# SPDX-License-Identifier: Apache-2.0
"""Kernels of the built-in coder against PyTorch, operator by operator, with the arguments that
PyTorch tests its own with: odd, empty and broadcast shapes, negative indices, other types.

CI draws MTMC_DRAWS pairs of operator and type by MTMC_SEED; `MTMC_DRAWS=0` takes them all
(about 40 minutes of one core).
"""

import os
import random

import cases
import judge
import pytest
import torch

SEED = int(os.environ.get("MTMC_SEED", "20261125"))
DRAWS = int(os.environ.get("MTMC_DRAWS", "60"))
SAMPLES = int(os.environ.get("MTMC_SAMPLES", "4"))
TYPES = (
    torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32, torch.bool
)


def drawn():
    pairs = [(name, dtype) for name in cases.names() for dtype in TYPES if cases.has(name, dtype)]
    return random.Random(SEED).sample(pairs, DRAWS) if DRAWS else pairs


@pytest.fixture(scope="module")
def judging():
    torch.set_num_threads(1)
    return judge.Judge()


@pytest.mark.parametrize("name,dtype", drawn())
def test_kernels_compute_what_pytorch_does(judging, tmp_path, name, dtype):
    case = cases.Case(name, dtype, SAMPLES, SEED)
    if not case.tensors():
        pytest.skip("no sample with a dense tensor")
    try:
        differences = judging.differences(tmp_path, case)
    except judge.NotJudged as reason:
        pytest.skip(str(reason))

    assert not differences, case.source()
