# SPDX-License-Identifier: Apache-2.0
"""Numbers and choices that a generator draws one at a time."""

import torch


def uniform(generator, low, high):
    """A number between two."""
    drawn = torch.rand((), generator=generator, device=generator.device).item()
    return low + (high - low) * drawn


def sign(generator):
    """1 or -1."""
    return 1 if uniform(generator, -1, 1) > 0 else -1


def pick(items, generator):
    """One of them, each as likely."""
    return items[min(int(uniform(generator, 0, len(items))), len(items) - 1)]


def one_of(ways, generator):
    """One of (weight, way), as its weight says."""
    left = uniform(generator, 0.0, sum(weight for weight, _ in ways))
    for weight, way in ways:
        left -= weight
        if left <= 0:
            return way
    return ways[-1][1]
