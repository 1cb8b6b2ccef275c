# SPDX-License-Identifier: Apache-2.0
"""The gate of a SwiGLU layer: two halves of one tensor, SiLU of one times the other."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 4096
COLUMNS = 4096


class Model(nn.Module):
    def forward(self, x):
        gate, value = x.chunk(2, dim=-1)
        return F.silu(gate) * value


def get_inputs():
    return [torch.randn(ROWS, 2 * COLUMNS)]


def get_init_inputs():
    return []
