# SPDX-License-Identifier: Apache-2.0
"""A problem in KernelBench form that `rehearsal.py` loads: one operator of each library, and what
our own kernels are for."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(2, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.linear = nn.Linear(9, 8)

    def forward(self, x):
        x = torch.sigmoid(self.norm(self.convolution(x)))
        return torch.relu(self.linear(x.flatten(2)))


def get_inputs():
    return [torch.randn(2, 2, 5, 5)]
