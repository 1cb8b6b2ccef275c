# SPDX-License-Identifier: Apache-2.0
"""A filter that happens to be a mean."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.full((1, 1, 5), 0.2))

    def forward(self, x):
        return F.conv1d(x, self.weight)


def get_inputs():
    return [torch.randn(16, 1, 68)]


def get_init_inputs():
    return []
