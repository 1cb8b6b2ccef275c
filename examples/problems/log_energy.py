# SPDX-License-Identifier: Apache-2.0
"""Reduction over the middle axis: the log energy of each column of a batch of signals."""

import torch
import torch.nn as nn

BATCH = 64
STEPS = 512
COLUMNS = 512


class Model(nn.Module):
    def forward(self, x):
        centred = x - 0.5
        return torch.log(torch.sum(centred * centred, dim=1, keepdim=True) + 1e-6)


def get_inputs():
    return [torch.rand(BATCH, STEPS, COLUMNS)]


def get_init_inputs():
    return []
