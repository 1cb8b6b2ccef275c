# SPDX-License-Identifier: Apache-2.0
"""Run as a program: check_export.py PROBLEM EXPORTED TOLERANCE

Compares an exported file's ModelNew with the problem's Model in a plain PyTorch
process, with the seeds of KernelBench, on inputs that the search has not seen.
Fails if mtmc has anything to do with it."""

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


def tensors(value):
    return [value] if isinstance(value, torch.Tensor) else list(value)


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
            expected, got = tensors(model(*inputs)), tensors(winner(*inputs))
        assert len(expected) == len(got)
        for a, b in zip(expected, got, strict=True):
            torch.testing.assert_close(b, a, rtol=tolerance, atol=tolerance)
    foreign = sorted(name for name in sys.modules if name.split(".")[0].startswith("mtmc"))
    assert not foreign, foreign
    print("same")


main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
