# SPDX-License-Identifier: Apache-2.0
"""A chain of pointwise operations: affine, GELU, clamp, squared ReLU.

Eager writes every intermediate to memory; one kernel needs one pass.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 2048
COLUMNS = 4096


class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(columns) + 0.5)
        self.shift = nn.Parameter(torch.rand(columns) - 0.5)

    def forward(self, x):
        x = x * self.scale + self.shift
        x = F.gelu(x)
        x = torch.clamp(x, max=4.0)
        return x + 0.1 * torch.relu(x - 1.0) ** 2


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return [COLUMNS]
