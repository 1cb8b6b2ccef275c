# SPDX-License-Identifier: Apache-2.0
"""Answers that must not pass: a problem that accepts one is degenerate."""

import torch

from .compare import error, finite_mean


def passing_probes(expected, allowed, inputs, replayed):
    """Names of the probes that every user output would accept.

    `expected` and `allowed` are those of the user outputs alone; `replayed` are
    the outputs for the inputs of another seed, None where there are no inputs.
    """
    probes = {
        "zeros": [_filled(r, 0.0) for r in expected],
        "mean": [_filled(r, finite_mean(r)) if r.numel() > 1 else None for r in expected],
        "input": [_same_shaped(r, inputs) for r in expected],
        "replay": replayed or [None] * len(expected),
    }
    return [name for name, outputs in probes.items() if _passes(outputs, expected, allowed)]


def _passes(outputs, expected, allowed):
    return all(
        y is not None and error(y, r).tolerance <= t for y, r, t in zip(outputs, expected, allowed)
    )


def _filled(reference, value):
    dtype = torch.float64 if reference.is_floating_point() else reference.dtype
    value = value if reference.is_floating_point() else int(value)
    return torch.full((), value, dtype=dtype, device=reference.device).expand(reference.shape)


def _same_shaped(reference, inputs):
    for value in inputs:
        if isinstance(value, torch.Tensor) and value.shape == reference.shape:
            return value
    return None
