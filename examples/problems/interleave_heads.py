# SPDX-License-Identifier: Apache-2.0
"""Data movement: split into heads, transpose, rotate halves and join again."""

import torch
import torch.nn as nn

BATCH = 8
STEPS = 2048
HEADS = 16
WIDTH = 64


class Model(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, x):
        batch, steps, columns = x.shape
        x = x.view(batch, steps, self.heads, columns // self.heads).transpose(1, 2)
        left, right = x.chunk(2, dim=-1)
        return torch.cat((-right, left), dim=-1).contiguous()


def get_inputs():
    return [torch.randn(BATCH, STEPS, HEADS * WIDTH)]


def get_init_inputs():
    return [HEADS]
