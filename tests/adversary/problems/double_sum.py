# SPDX-License-Identifier: Apache-2.0
"""Sums in double precision."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.sum(dim=1)


def get_inputs():
    return [torch.randn(64, 1024, dtype=torch.float64)]


def get_init_inputs():
    return []
