# SPDX-License-Identifier: Apache-2.0
"""Whether a row has one."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, mask):
        return mask.any(dim=1)


def get_inputs():
    return [torch.rand(64, 64) > 0.5]


def get_init_inputs():
    return []
