# SPDX-License-Identifier: Apache-2.0
"""A matrix product whose rows are reduced at once: leaky ReLU, then log-sum-exp."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 2048
INPUTS = 256
OUTPUTS = 4096


class Model(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x):
        x = F.leaky_relu(self.linear(x), negative_slope=0.1)
        return torch.logsumexp(x, dim=1, keepdim=True)


def get_inputs():
    return [torch.randn(ROWS, INPUTS)]


def get_init_inputs():
    return [INPUTS, OUTPUTS]
