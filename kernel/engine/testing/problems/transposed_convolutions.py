# SPDX-License-Identifier: Apache-2.0
"""Transposed convolutions that have a plain form: by remainders of the stride, in groups, or over
three axes."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.ConvTranspose1d(3, 4, 4, stride=3, padding=1, output_padding=2)
        self.grouped = nn.ConvTranspose2d(4, 6, (3, 2), stride=2, groups=2, bias=False)
        self.one_axis = nn.ConvTranspose2d(4, 2, 3, stride=(1, 2), padding=(1, 0))
        self.deep = nn.ConvTranspose3d(2, 3, (1, 2, 3), padding=(0, 0, 1), dilation=(1, 2, 1))
        self.strided = nn.ConvTranspose3d(2, 3, 3, stride=2, padding=1, output_padding=1)

    def forward(self, x, y, v):
        first = torch.relu(self.line(x))
        second = self.grouped(y) * 0.5
        third = torch.tanh(self.one_axis(y))
        return first, second, third, self.deep(v), torch.sigmoid(self.strided(v)) + 1


def get_inputs():
    return [torch.randn(2, 3, 7), torch.randn(2, 4, 5, 6), torch.randn(2, 2, 3, 4, 5)]


def get_init_inputs():
    return []
