# SPDX-License-Identifier: Apache-2.0
"""GELU by its tanh approximation, spelled out in primitive operations."""

import math

import torch
import torch.nn as nn

ROWS = 2048
COLUMNS = 4096


class Model(nn.Module):
    def forward(self, x):
        cubic = x + 0.044715 * torch.pow(x, 3.0)
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * cubic))


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
