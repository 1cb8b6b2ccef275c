# SPDX-License-Identifier: Apache-2.0
"""Values of one input that were seen, and what the graph says about it."""

import dataclasses
import math

import torch

from .graph_domain import Uses

# How far beyond what was seen numbers of the graph lie that are values, too, in its span.
_LEAST_BEYOND = 16
# Most distinct values that are drawn from as a set; where there are more, the range counts.
_MOST_VALUES = 64
_SAMPLE = 1 << 16


@dataclasses.dataclass
class Domain:
    """Values of one input that were seen, and what the graph says about it."""

    # Of all but those that an operator takes for something else, such as a label that is ignored:
    # what lies between these and the others may be none.
    low: float
    high: float
    # Values on the host, where they are few; None where the range counts.
    values: torch.Tensor
    uses: Uses

    @property
    def is_constant(self):
        return self.low == self.high


def domain_of(draws, uses):
    """Domain of an input whose values in several draws of `get_inputs` are given."""
    usual = [_usual(tensor, uses.special) for tensor in draws]
    lows, highs, samples = [], [], []
    for tensor, others in zip(draws, usual if any(x.numel() for x in usual) else draws):
        flat = tensor.reshape(-1)
        # Not all types have extremes on all devices.
        sample = flat[:: max(flat.numel() // _SAMPLE, 1)]
        wide = others.to(torch.uint8) if others.dtype == torch.bool else others
        if wide.numel():
            low, high = wide.aminmax()
            lows.append(low.item())
            highs.append(high.item())
        samples.append(torch.unique(sample).cpu())
    values = torch.unique(torch.cat(samples))
    if values.dtype not in (torch.bool, torch.uint8) and not values.is_floating_point():
        near = _compared(min(lows), max(highs), uses, torch.iinfo(values.dtype))
        values = torch.unique(torch.cat([values, values.new_tensor(near)]))
        lows, highs = [*lows, *near], [*highs, *near]
    is_set = values.numel() <= _MOST_VALUES
    return Domain(min(lows), max(highs), values if is_set else None, uses)


def _compared(low, high, uses, held):
    """Numbers of the graph with which it compares, that are next to those that were seen and that
    their type, of which `held` is the torch.iinfo, holds: where nothing else restricts these they
    are values, too, that few draws have left out."""
    if uses.is_restricted or uses.is_ordered or uses.is_written:
        return []
    beyond = max(high - low, _LEAST_BEYOND)
    least, most = max(low - beyond, held.min), min(high + beyond, held.max)
    return [value for value in uses.compared if least <= value <= most]


def _usual(tensor, special):
    """The elements that are none of the `special` ones."""
    if not special:
        return tensor
    return tensor[~torch.isin(tensor, torch.tensor(special, device=tensor.device))]


def finite_range(domain):
    """(smallest, largest) finite value that was seen."""
    values = domain.values.double() if domain.values is not None else torch.tensor([])
    if not values.numel() and math.isfinite(domain.low) and math.isfinite(domain.high):
        return domain.low, domain.high
    values = values[values.isfinite()]
    return (values.min().item(), values.max().item()) if values.numel() else (0.0, 1.0)


def draw_values(shape, domain, generator, dtype):
    """Values inside the domain, each as likely."""
    device = generator.device
    if domain.values is not None:
        values = domain.values.to(device)
        return values[torch.randint(len(values), shape, generator=generator, device=device)]
    low, high = int(domain.low), int(domain.high)
    # The largest int64 is no legal end for a draw.
    high = min(high + 1, torch.iinfo(torch.int64).max)
    drawn = torch.randint(low, high, shape, generator=generator, device=device)
    return drawn.to(dtype)
