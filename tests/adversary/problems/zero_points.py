# SPDX-License-Identifier: Apache-2.0
"""Zero points that a new module has at 0."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("zeros", torch.zeros(32, dtype=torch.int32))

    def forward(self, x):
        return x - self.zeros


def get_inputs():
    return [torch.randn(64, 32)]


def get_init_inputs():
    return []
