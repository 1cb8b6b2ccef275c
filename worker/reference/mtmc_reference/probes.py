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
    # How far one number is from all elements, their range tells.
    ranges = spreads(expected)
    found = {"zeros": [spread.zeros_tolerance() for spread in ranges]}
    if all(r.numel() != 1 for r in expected):
        found["mean"] = [spread.mean_tolerance() for spread in ranges]
    for name, outputs in (
        ("input", [_same_shaped(r, inputs) for r in expected]),
        ("replay", replayed or [None]),
    ):
        if all(output is not None for output in outputs):
            found[name] = tolerances(list(zip(outputs, expected)))
    return found


def _same_shaped(reference, inputs):
    for value in inputs:
        if isinstance(value, torch.Tensor) and value.shape == reference.shape:
            return value
    return None
