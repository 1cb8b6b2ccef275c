# SPDX-License-Identifier: Apache-2.0
"""A gate that a new module leaves closed."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(32))

    def forward(self, x):
        return x * (1 + torch.tanh(self.gate))


def get_inputs():
    return [torch.randn(64, 32)]


def get_init_inputs():
    return []
