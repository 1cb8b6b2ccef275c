# SPDX-License-Identifier: Apache-2.0
"""A perceptron with two hidden layers: three products, two activations."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 1024
INPUTS = 512
HIDDEN = 1024
OUTPUTS = 256


class Model(nn.Module):
    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        self.fc1 = nn.Linear(inputs, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, outputs)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


def get_inputs():
    return [torch.randn(ROWS, INPUTS)]


def get_init_inputs():
    return [INPUTS, HIDDEN, OUTPUTS]
