# SPDX-License-Identifier: Apache-2.0
"""A weight that is kept within bounds."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(0.02 * torch.randn(32))

    def forward(self, x):
        return x * self.gate.clamp(-1, 1)


def get_inputs():
    return [torch.randn(64, 32)]


def get_init_inputs():
    return []
