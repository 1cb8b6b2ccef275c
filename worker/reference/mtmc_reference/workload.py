# SPDX-License-Identifier: Apache-2.0
"""Inputs of a problem: one workload per seed, number 0 is the public one."""

import contextlib
import hashlib
import os

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from . import tensor_type
from .failure import ProblemFailure
from .problem import seed_everything

# Part of the free memory that a problem may take, the rest is for temporaries.
_USABLE_RATIO = 0.8


def fork_seed(seed, workload):
    """Seed of a workload; the public workload keeps the problem's own."""
    if workload == 0:
        return seed
    digest = hashlib.sha256(f"{seed}:{workload}".encode()).digest()
    return int.from_bytes(digest[:7], "little")


def draw(problem, seed, workload, device):
    """Fresh forward arguments on `device`, tensors dense row-major.

    On CUDA the random numbers are drawn on the device, because drawing billions
    of them on the host takes a minute. They thus differ from those of a CPU.
    """
    number = fork_seed(seed, workload)
    inputs = None
    if device.type == "cuda":
        with contextlib.suppress(ProblemFailure), torch.device(device):
            seed_everything(number)
            inputs = problem.draw()
    if inputs is None:
        seed_everything(number)
        inputs = problem.draw()
    return [_placed(value, index, device) for index, value in enumerate(inputs)]


def predict_bytes(problem):
    """Bytes that `get_inputs` would allocate; 0 where only a real call can tell."""
    try:
        with FakeTensorMode():
            return total_bytes(problem.draw())
    except ProblemFailure:
        return 0


def total_bytes(values):
    """Bytes of the tensors among `values`."""
    return sum(tensor_type.byte_count(value) for value in values if isinstance(value, torch.Tensor))


def form(inputs):
    """Shapes and element types of the tensors, and the other arguments as they are."""
    return [
        (tuple(value.shape), value.dtype) if isinstance(value, torch.Tensor) else value
        for value in inputs
    ]


def require_same_form(inputs, expected):
    """Raises unless `form(inputs)` is that of the workload that was traced."""
    if form(inputs) != expected:
        raise ProblemFailure(
            "INPUTS_WRONG_TYPE",
            "get_inputs returns other shapes, types or scalars for another seed; make them fixed",
        )


def free_bytes(device):
    """Memory that a new allocation on `device` can use."""
    if device.type == "cuda":
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + cached
    with open("/proc/meminfo", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def return_cached_memory():
    """Gives the device memory that PyTorch keeps for later to other processes."""
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def require_memory(need, limit, device, what):
    """Raises INPUTS_TOO_LARGE when `need` bytes exceed `limit` (0: none) or free memory."""
    usable = int(free_bytes(device) * _USABLE_RATIO)
    most = min(limit, usable) if limit else usable
    if need > most:
        raise ProblemFailure(
            "INPUTS_TOO_LARGE",
            f"{what} take {need / 1e9:.1f} GB and at most {most / 1e9:.1f} GB may be used; "
            "make the sizes of the problem smaller",
        )


def _placed(value, index, device):
    if isinstance(value, torch.Tensor):
        if not tensor_type.is_supported(value.dtype):
            raise ProblemFailure(
                "INPUTS_WRONG_TYPE",
                f"input {index} is a tensor of {value.dtype}; use a real type such as float32",
            )
        return value.detach().to(device).contiguous()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ProblemFailure(
        "INPUTS_WRONG_TYPE",
        f"input {index} is a {type(value).__name__}; return tensors and plain numbers",
    )
