# SPDX-License-Identifier: Apache-2.0
"""Answers that must not pass: a problem that accepts one is degenerate."""

import torch

from .compare import spreads, tolerances

PROBES = ("zeros", "mean", "input", "replay")


def needed_tolerances(expected, inputs, replayed):
    """The tolerances, one per output, at which each probe of PROBES would pass.

    `expected` are the user outputs alone; `replayed` are the outputs for other
    inputs, None where there are no inputs. A probe that cannot be made is absent.
    """
    found = {"zeros": [_filled(r, 0.0) for r in expected]}
    means = [spread.mean for spread in spreads(expected)]
    found["mean"] = [
        _filled(r, mean) if r.numel() > 1 else None for r, mean in zip(expected, means)
    ]
    found["input"] = [_same_shaped(r, inputs) for r in expected]
    found["replay"] = replayed or [None]
    return {
        name: tolerances(list(zip(outputs, expected)))
        for name, outputs in found.items()
        if all(output is not None for output in outputs)
    }


def _filled(reference, value):
    if not reference.is_floating_point():
        value = int(value) if abs(value) < 2**62 else 0
    value = torch.full((), value, dtype=reference.dtype, device=reference.device)
    return value.expand(reference.shape)


def _same_shaped(reference, inputs):
    for value in inputs:
        if isinstance(value, torch.Tensor) and value.shape == reference.shape:
            return value
    return None
