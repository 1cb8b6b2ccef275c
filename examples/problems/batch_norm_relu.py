# SPDX-License-Identifier: Apache-2.0
"""Batch norm with batch statistics, then ReLU; the running statistics change too."""

import torch
import torch.nn as nn

BATCH = 16
CHANNELS = 64
HEIGHT = 112
WIDTH = 112


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return torch.relu(self.norm(x))


def get_inputs():
    return [torch.rand(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS]
