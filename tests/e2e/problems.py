# SPDX-License-Identifier: Apache-2.0
"""Problems that take the CPU path a second or two."""

_CHAIN = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        gate = torch.sigmoid(x * {factor})
        return torch.tanh(x) * gate + {factor}


def get_inputs():
    return [torch.randn({rows}, 256)]


def get_init_inputs():
    return []
"""


def pointwise(number=0, rows=128):
    """A chain of pointwise operators; each number is another problem, so that no
    cache knows it."""
    return _CHAIN.format(factor=1.0 + number / 64, rows=rows)


def quick(contract, trials=4, strategy="mtmc", **search):
    """Fields of a Job that is evaluated with as few samples as make a verdict."""
    return {
        "budget": contract.Budget(max_trials=trials),
        "search": contract.SearchOptions(speed_of_light_ratio=10, **{strategy: {}}, **search),
        "evaluation": contract.EvaluationOptions(
            min_samples=5, max_noise_ratio=0.5, max_variants=2, hidden_seeds=1, omit_profile=True
        ),
    }
