# SPDX-License-Identifier: Apache-2.0
"""A small matrix product with parameters."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(512, 64)

    def forward(self, x):
        return F.gelu(self.linear(x))


def get_inputs():
    return [torch.randn(32, 512)]


def get_init_inputs():
    return []
