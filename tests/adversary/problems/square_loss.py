# SPDX-License-Identifier: Apache-2.0
"""A mean over many independent elements hardly moves."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, predictions, targets):
        return F.mse_loss(predictions, targets)


def get_inputs():
    return [torch.rand(512, 512), torch.rand(512, 512)]


def get_init_inputs():
    return []
