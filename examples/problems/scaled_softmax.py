# SPDX-License-Identifier: Apache-2.0
"""Softmax over rows of scores, with a temperature and an additive mask row."""

import torch
import torch.nn as nn

ROWS = 4096
COLUMNS = 2048


class Model(nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature

    def forward(self, scores, mask):
        return torch.softmax(scores / self.temperature + mask, dim=-1)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS), torch.randn(COLUMNS)]


def get_init_inputs():
    return [0.7]
