# SPDX-License-Identifier: Apache-2.0
"""Exact where x is small."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.expm1(x)


def get_inputs():
    return [torch.randn(64, 32)]


def get_init_inputs():
    return []
