# SPDX-License-Identifier: Apache-2.0
"""The end of a transformer block: add the residual, then layer norm with affine."""

import torch
import torch.nn as nn

ROWS = 8192
COLUMNS = 2048


class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.norm = nn.LayerNorm(columns)

    def forward(self, x, residual):
        return self.norm(x + residual)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return [COLUMNS]
