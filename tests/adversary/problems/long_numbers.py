# SPDX-License-Identifier: Apache-2.0
"""Integers of 64 bits that happen to be small."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x * 3 + 1


def get_inputs():
    return [torch.randint(-100, 100, (64, 32))]


def get_init_inputs():
    return []
