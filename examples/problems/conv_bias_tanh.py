# SPDX-License-Identifier: Apache-2.0
"""A small 3x3 convolution with a pointwise epilogue."""

import torch
import torch.nn as nn

BATCH = 16
INPUTS = 16
OUTPUTS = 32
HEIGHT = 128
WIDTH = 128


class Model(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1)
        self.gain = nn.Parameter(torch.rand(outputs, 1, 1) + 0.5)

    def forward(self, x):
        x = self.conv(x)
        x = x - torch.tanh(x)
        return x * self.gain


def get_inputs():
    return [torch.randn(BATCH, INPUTS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [INPUTS, OUTPUTS]
