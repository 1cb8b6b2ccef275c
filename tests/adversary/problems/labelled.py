# SPDX-License-Identifier: Apache-2.0
"""Labels that choose one score of each row."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, scores, labels):
        return F.cross_entropy(scores, labels, reduction="none")


def get_inputs():
    return [torch.randn(64, 32), torch.randint(0, 32, (64,))]


def get_init_inputs():
    return []
