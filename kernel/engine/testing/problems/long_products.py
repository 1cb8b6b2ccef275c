# SPDX-License-Identifier: Apache-2.0
"""Products over so many terms that a running sum would lose those that are small beside it."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(20000, 8)

    def forward(self, x, w):
        # Beside the first term each of the others is nothing, and all of them are something.
        first = torch.full((6, 1), 1e4)
        x = torch.cat([first, x.abs() * 2e-4], dim=1)
        weight = torch.cat([torch.ones(1, 8), w.abs()], dim=0)
        return torch.mm(x, weight), self.linear(x)


def get_inputs():
    return [torch.randn(6, 19999), torch.randn(19999, 8)]


def get_init_inputs():
    return []
