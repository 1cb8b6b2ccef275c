# SPDX-License-Identifier: Apache-2.0
"""The largest whole numbers that are not above."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.floor(x)


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return []
