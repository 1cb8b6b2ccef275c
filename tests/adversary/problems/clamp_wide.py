# SPDX-License-Identifier: Apache-2.0
"""Its result equals its input on every input that anybody draws."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.clamp(x, -1e30, 1e30)


def get_inputs():
    return [torch.randn(64, 256)]


def get_init_inputs():
    return []
