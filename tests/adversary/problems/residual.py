# SPDX-License-Identifier: Apache-2.0
"""A second summand that happens to be zero."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, y):
        return torch.relu(x) + y


def get_inputs():
    return [torch.randn(64, 32), torch.zeros(64, 32)]


def get_init_inputs():
    return []
