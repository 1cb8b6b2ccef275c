# SPDX-License-Identifier: Apache-2.0
"""Programs that leave out an edge of a model are refused, and models are not."""

import os

import edges
import pytest

# The same for every change, so that a failure is the change's; another one draws others.
_SEED = os.environ.get("MTMC_EDGES_SEED", "20261130")
_PER_CLASS = 2


@pytest.mark.parametrize("edge", sorted(edges.MODELS.keys() - edges.OPEN), ids=lambda edge: edge.partition(" ")[2])
def test_what_leaves_out_an_edge_is_refused_and_models_are_not(client, tmp_path, edge):
    for drawn in edges.draw(_SEED, _PER_CLASS, [edge]):
        drawn.load(client, tmp_path / "problem.py")
        assert not drawn.refusals(client, is_program=False), drawn.title
        assert drawn.refusals(client, is_program=True), drawn.title
