# SPDX-License-Identifier: Apache-2.0
"""Solvers are disturbed by what rounding of their matrix does, not of their result."""

import contextlib

import pytest
import torch
from mtmc_reference.rounding import Disturbed, unit_of
from mtmc_reference.steadiness import Steadiness

_UNIT = unit_of(torch.float32)


def _matrices(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return 12 * torch.eye(6) + torch.randn(8, 6, 6, generator=generator)


def _solve(a):
    return torch.linalg.solve(a, torch.ones(8, 6, 1)).squeeze(-1)


_SOLVERS = {
    "solve": _solve,
    "inv": torch.linalg.inv,
    "det": torch.linalg.det,
    "cholesky": lambda a: torch.linalg.cholesky(a @ a.mT),
    "triangular": lambda a: torch.linalg.solve_triangular(a.tril(), torch.ones(8, 6, 1), upper=False),
}


@pytest.mark.parametrize("name", _SOLVERS)
def test_a_solver_of_good_condition_is_off_by_a_few_roundings(name):
    solver, a = _SOLVERS[name], _matrices()
    own = solver(a)
    with Disturbed(_UNIT):
        disturbed = solver(a)
    change = ((disturbed - own).abs().amax() / own.abs().amax()).item()
    assert _UNIT < change < 200 * _UNIT


def test_a_program_in_double_is_within_the_disturbance_next_to_a_singular_matrix():
    generator = torch.Generator().manual_seed(1)
    column = torch.randn(8, 6, 1, generator=generator)
    a = column @ column.mT + 1e-6 * _matrices(2)
    own = _solve(a)
    with Disturbed(_UNIT):
        disturbed = _solve(a)
    wide = torch.linalg.solve(a.double(), torch.ones(8, 6, 1).double()).squeeze(-1)
    assert ((wide - own).abs().amax(1) <= 4 * (disturbed - own).abs().amax(1)).all()


def test_next_to_singular_matrices_rounding_decides():
    def run(inputs, observer, state):
        with observer or contextlib.nullcontext():
            return [_solve(inputs[0])]

    public = [_matrices()]
    steadiness = Steadiness(run, lambda: public)
    assert steadiness.is_both(public, None, run(public, None, None))
    equal = [torch.ones(8, 6, 6) + 1e-7 * _matrices(3)]
    assert not steadiness.is_both(equal, None, run(equal, None, None))
