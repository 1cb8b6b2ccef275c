# SPDX-License-Identifier: Apache-2.0
"""Products of which only sums, means and windows are needed."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(24, 40)
        self.second = nn.Linear(16, 12)

    def forward(self, x, z, w):
        windows = nn.functional.avg_pool1d(self.first(x).unsqueeze(1), 4).squeeze(1)
        total = (torch.matmul(x, w) / 2).sum(dim=1, keepdim=True)
        tokens = (self.second(z) * 3 + 1).mean(dim=1)
        return nn.functional.gelu(windows) * total, tokens


def get_inputs():
    return [torch.randn(6, 24), torch.randn(5, 7, 16), torch.randn(24, 20)]


def get_init_inputs():
    return []
