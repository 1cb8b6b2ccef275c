# SPDX-License-Identifier: Apache-2.0
"""Floats that happen to be whole."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x * 0.5


def get_inputs():
    return [torch.randint(0, 16, (64, 32)).float()]


def get_init_inputs():
    return []
