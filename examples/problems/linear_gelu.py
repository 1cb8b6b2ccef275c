# SPDX-License-Identifier: Apache-2.0
"""A matrix product with bias and a GELU epilogue."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 2048
INPUTS = 512
OUTPUTS = 2048


class Model(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x):
        return F.gelu(self.linear(x) * 0.5)


def get_inputs():
    return [torch.randn(ROWS, INPUTS)]


def get_init_inputs():
    return [INPUTS, OUTPUTS]
