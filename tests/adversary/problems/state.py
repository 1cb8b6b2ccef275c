# SPDX-License-Identifier: Apache-2.0
"""A recurrent step from a state that is zero in the file."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = nn.RNNCell(16, 16)

    def forward(self, x, state):
        return self.step(x, state)


def get_inputs():
    return [torch.randn(32, 16), torch.zeros(32, 16)]


def get_init_inputs():
    return []
