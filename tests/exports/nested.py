# SPDX-License-Identifier: Apache-2.0
"""Whether two answers of `forward` are alike: containers, plain values, tensors, and which of
the tensors are one."""

import dataclasses

import torch


def difference(got, expected, tolerance, place="it"):
    """A sentence, or None where there is none. `place` is where in the answer this is."""
    if type(got) is not type(expected):
        return f"{place} is a {type(got).__name__}, not a {type(expected).__name__}"
    if isinstance(expected, torch.Tensor):
        return _tensor_difference(got, expected, tolerance, place)
    if dataclasses.is_dataclass(expected):
        got, expected = vars(got), vars(expected)
    if isinstance(expected, dict):
        if list(got) != list(expected):
            return f"{place} has the keys {list(got)}, not {list(expected)}"
        pairs = [(f"{place}[{key!r}]", got[key], expected[key]) for key in expected]
    elif isinstance(expected, (tuple, list)):
        if len(got) != len(expected):
            return f"{place} has {len(got)} items, not {len(expected)}"
        pairs = [(f"{place}[{i}]", *both) for i, both in enumerate(zip(got, expected))]
    else:
        return None if got == expected else f"{place} is {got!r}, not {expected!r}"
    found = (difference(own, other, tolerance, below) for below, own, other in pairs)
    return next((text for text in found if text), None)


def _tensor_difference(got, expected, tolerance, place):
    if (got.dtype, got.shape) != (expected.dtype, expected.shape):
        have, want = (f"{t.dtype} {tuple(t.shape)}" for t in (got, expected))
        return f"{place} is {have}, not {want}"
    if not torch.allclose(got, expected, rtol=tolerance, atol=tolerance, equal_nan=True):
        return f"{place} differs by {(got - expected).abs().max()}"
    return None


def tensors(value):
    """Those in an answer, in their order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if dataclasses.is_dataclass(value):
        value = vars(value)
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return []
    return [tensor for item in value for tensor in tensors(item)]


def reordered(value):
    """The same value, its dictionaries filled the other way round."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    if isinstance(value, (tuple, list)):
        items = [reordered(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def sharing(answer, others):
    """For each tensor of an answer: the first tensor of `others` and the answer that it is."""
    all_tensors = [*others, *tensors(answer)]
    return [next(i for i, t in enumerate(all_tensors) if t is own) for own in tensors(answer)]
