# SPDX-License-Identifier: Apache-2.0
"""Models that choose by value pass on all workloads, and what assumes their parameters does not."""

import os
import random

import pytest
import routed
import torch

_SEED = os.environ.get("MTMC_ROUTED_SEED", "5")
_KINDS = routed.kinds(random.Random(_SEED), 3)


@pytest.mark.parametrize("kind", _KINDS)
def test_what_assumes_a_parameter_is_refused_and_models_are_not(client, tmp_path, kind):
    model = routed.Routed(client, kind, random.Random(f"{_SEED} {kind}"), tmp_path / "problem.py")

    assert model.refused_on() is None
    assert model.refused_on(dtype=torch.float64) is None
    for target in model.targets():
        accepted = [n for n, c in routed.CHANGES.items() if model.refused_on(target, c) is None]
        # Rounding decides where some of these are met, and no workload may be there.
        assert len(accepted) <= 1, (target, accepted)
