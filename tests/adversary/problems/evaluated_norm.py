# SPDX-License-Identifier: Apache-2.0
"""Statistics that a new module has."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(32, affine=False)
        self.norm.eval()

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(64, 32)]


def get_init_inputs():
    return []
