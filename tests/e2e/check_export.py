# SPDX-License-Identifier: Apache-2.0
"""Run as a program: check_export.py PROBLEM EXPORTED TOLERANCE

Compares an exported file's ModelNew with the problem's Model in a plain PyTorch
process, with the seeds of KernelBench, on inputs that the search has not seen.
Fails if mtmc has anything to do with it."""

import dataclasses
import importlib.util
import sys

import torch


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build(module, class_name):
    torch.manual_seed(42)
    arguments = module.get_init_inputs()
    torch.manual_seed(42)
    return getattr(module, class_name)(*arguments)


def compare(got, expected, tolerance):
    """The same tensors and plain values in the same containers; a class of the problem's file is
    another one in the exported file."""
    assert type(got).__qualname__ == type(expected).__qualname__, (type(got), type(expected))
    if isinstance(expected, torch.Tensor):
        torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)
    elif isinstance(expected, (tuple, list)):
        assert len(got) == len(expected)
        for own, other in zip(got, expected, strict=True):
            compare(own, other, tolerance)
    elif isinstance(expected, dict):
        assert list(got) == list(expected)
        compare(list(got.values()), list(expected.values()), tolerance)
    elif dataclasses.is_dataclass(expected):
        compare(vars(got), vars(expected), tolerance)
    else:
        assert got == expected


def main(problem_path, exported_path, tolerance):
    problem, exported = load(problem_path, "problem"), load(exported_path, "exported")
    model, winner = build(problem, "Model"), build(exported, "ModelNew")
    parameters, own = model.state_dict(), winner.state_dict()
    assert parameters.keys() == own.keys(), (list(parameters), list(own))
    assert all(torch.equal(parameters[key], own[key]) for key in parameters)
    for seed in (7, 8):
        torch.manual_seed(seed)
        inputs = problem.get_inputs()
        with torch.no_grad():
            expected, got = model(*inputs), winner(*inputs)
        compare(got, expected, tolerance)
    foreign = sorted(name for name in sys.modules if name.split(".")[0].startswith("mtmc"))
    assert not foreign, foreign
    print("same")


main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
