# SPDX-License-Identifier: Apache-2.0
"""A matrix product whose weights a checkpoint brings."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 96, bias=False)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(32, 64)]


def get_init_inputs():
    return []
