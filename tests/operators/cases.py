# SPDX-License-Identifier: Apache-2.0
"""Calls of PyTorch's operators with the samples that PyTorch tests them with (op_db), as problem
files: several calls of one operator and type to a file, which returns all of their results."""

import dataclasses
import functools
import random
import warnings

import torch

_SOURCE = """\
import cases
import torch
import torch.nn as nn

CASE = cases.Case({name!r}, {dtype}, {count}, {seed})


class Model(nn.Module):
    def forward(self, {names}):
        return CASE.call([{names}])


def get_inputs():
    return [tensor.clone() for tensor in CASE.tensors()]


def get_init_inputs():
    return []
"""


@functools.cache
def _entries():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return {f"{entry.name}.{entry.variant_test_name}".rstrip("."): entry for entry in op_db}


def names():
    """Operators, each with the name of its variant."""
    return sorted(_entries())


def has(name, dtype):
    """Whether the operator takes the type on a CPU."""
    return dtype in _entries()[name].dtypes


@dataclasses.dataclass(frozen=True)
class _Place:
    """Stands for a tensor among arguments."""

    number: int


class Case:
    """At most `count` calls of an operator, drawn by `seed`."""

    def __init__(self, name, dtype, count, seed):
        entry = _entries()[name]
        torch.manual_seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            samples = list(entry.sample_inputs("cpu", dtype, requires_grad=False))
        random.Random(f"{seed}:{name}:{dtype}").shuffle(samples)
        self._identity = {"name": name, "dtype": dtype, "count": count, "seed": seed}
        self._function, self._tensors = entry.op, []
        self._calls = [
            (self._lifted([sample.input, *sample.args]), self._lifted(sample.kwargs))
            for sample in samples[:count]
        ]

    def tensors(self):
        """The tensors among the arguments of all calls."""
        return self._tensors

    def names(self):
        """Names of `tensors` in `forward`."""
        return [f"t{number}" for number in range(len(self._tensors))]

    def call(self, tensors):
        """Results of all calls, of other tensors of the same types."""
        return [
            self._function(*_filled(arguments, tensors), **_filled(keywords, tensors))
            for arguments, keywords in self._calls
        ]

    def source(self):
        """The problem file."""
        return _SOURCE.format(names=", ".join(self.names()), **self._identity)

    def _lifted(self, value):
        if isinstance(value, torch.Tensor) and value.layout == torch.strided:
            self._tensors.append(value.detach().contiguous())
            return _Place(len(self._tensors) - 1)
        return _mapped(value, self._lifted)


def _filled(value, tensors):
    if isinstance(value, _Place):
        return tensors[value.number]
    return _mapped(value, lambda part: _filled(part, tensors))


def _mapped(value, change):
    if isinstance(value, (list, tuple)):
        return type(value)(change(part) for part in value)
    if isinstance(value, dict):
        return {key: change(part) for key, part in value.items()}
    return value
