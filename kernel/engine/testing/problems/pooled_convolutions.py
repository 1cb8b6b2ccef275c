# SPDX-License-Identifier: Apache-2.0
"""Convolutions of which only means over positions are needed."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.plain = nn.Conv2d(3, 8, 3, padding=1)
        self.strided = nn.Conv2d(3, 4, 3, stride=2)
        self.up = nn.ConvTranspose2d(3, 6, 3, stride=2, padding=1, output_padding=1)
        self.deep = nn.ConvTranspose3d(2, 5, 3, padding=1)
        self.scale = nn.Parameter(torch.randn(6, 1, 1))

    def forward(self, x, v):
        pooled = torch.sigmoid(nn.functional.avg_pool2d(self.plain(x), 4))
        whole = self.strided(x).mean(dim=(2, 3), keepdim=True)
        halved = nn.functional.avg_pool2d(self.up(x) * self.scale, 2)
        total = (self.up(x) * 0.5).sum(dim=(2, 3))
        depth = torch.softmax(self.deep(v).mean(dim=2, keepdim=True), dim=1)
        return pooled, whole, halved, total, depth


def get_inputs():
    return [torch.randn(2, 3, 12, 12), torch.randn(2, 2, 4, 6, 5)]


def get_init_inputs():
    return []
