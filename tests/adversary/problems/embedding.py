# SPDX-License-Identifier: Apache-2.0
"""A table that training has yet to change."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(16, 8)

    def forward(self, x):
        return self.table(x)


def get_inputs():
    return [torch.randint(0, 16, (64,))]


def get_init_inputs():
    return []
