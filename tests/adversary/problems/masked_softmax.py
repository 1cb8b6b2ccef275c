# SPDX-License-Identifier: Apache-2.0
"""A mask that happens to be causal."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, mask):
        return torch.softmax(x.masked_fill(~mask, -1e9), dim=1)


def get_inputs():
    return [torch.randn(64, 64), torch.ones(64, 64, dtype=torch.bool).tril()]


def get_init_inputs():
    return []
