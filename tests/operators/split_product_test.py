# SPDX-License-Identifier: Apache-2.0
"""Products in three TF32 terms (`split_product`) are what PyTorch computes, whatever their shape.

The kernels run on PoCL and the library's product in FP32, so that the three terms add up to
FP32's answer or better; what tensor cores round is the worker's to judge.
"""

import json
import os
import random
import re

import pytest
import torch
from judge import ENGINE, OpenClRunner, Program, ProblemFile, _engine, run_graph, trace
from program_runner import Nvrtc, spills

_SEED = int(os.environ.get("MTMC_TEST_SEED", 1))
_DRAWS = 14
# Largest error in parts of the result's mean magnitude.
_BOUND = 2e-5

_FORMS = {
    "linear": ("self.linear(x)", "[{m}, {k}]", None, "self.linear = torch.nn.Linear({k}, {n})"),
    "matmul": ("x @ y", "[{m}, {k}]", "[{k}, {n}]", ""),
    "left transposed": ("x.T @ y", "[{k}, {m}]", "[{k}, {n}]", ""),
    "right transposed": ("x @ y.T", "[{m}, {k}]", "[{n}, {k}]", ""),
    "batch": ("torch.bmm(x, y)", "[3, {m}, {k}]", "[3, {k}, {n}]", ""),
    "shared right": ("torch.einsum('bij,jk->bik', x, y)", "[3, {m}, {k}]", "[{k}, {n}]", ""),
    "slice": ("x[:, 1:] @ y[:, ::2]", "[{m}, {k} + 1]", "[{k}, 2 * {n}]", ""),
    "maps before": ("torch.tanh(x) @ (y * 2)", "[{m}, {k}]", "[{k}, {n}]", ""),
    "two axes": ("torch.einsum('ikl,klj->ij', x, y)", "[{m}, {k}, 3]", "[{k}, 3, {n}]", ""),
}
_TAILS = ["{}", "torch.relu({}) * 0.5", "({} + 1).abs()", "torch.sigmoid({})"]


def _source(form, random_):
    product, x, y, built = _FORMS[form]
    sizes = {name: random_.choice([1, 5, 16, 33, 48]) for name in "mn"}
    sizes["k"] = random_.choice([1, 3, 64, 127, 128, 129, 300, 512])
    tail = random_.choice(_TAILS).format(product)
    shapes = [x, y] if y else [x]
    drawn = ", ".join(f"torch.randn({shape})".format(**sizes) for shape in shapes)
    return f"""import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {built.format(**sizes) or "pass"}
    def forward(self, {", ".join("xy"[: len(shapes)])}):
        return {tail}
def get_inputs():
    return [{drawn}]
def get_init_inputs():
    return []
"""


def _schedule(path, dialect):
    """All groups as one of the template, with short sums."""
    listed = _engine("actions", path, "--dialect", dialect).split("\n\n")[0]
    nodes = [re.search(r"nodes=(\S+)", line)[1] for line in listed.splitlines() if "nodes=" in line]
    return f"group product template=split_product nodes={','.join(nodes)} sum=128\n"


@pytest.mark.parametrize("index", range(_DRAWS))
def test_a_split_product_is_the_product(tmp_path, index):
    random_ = random.Random(f"{_SEED} {index}")
    form = list(_FORMS)[index % len(_FORMS)]
    file = tmp_path / "problem.py"
    file.write_text(_source(form, random_))
    problem = ProblemFile(str(file))
    model = problem.build_model(_SEED, torch.device("cpu"))
    drawn = problem.draw()
    graph, constants = trace(problem, model, drawn)[:2]
    path, schedule = tmp_path / "graph.json", tmp_path / "schedule"
    path.write_text(json.dumps(graph))
    texts = {}
    for dialect in ("opencl", "cuda"):
        schedule.write_text(_schedule(path, dialect))
        texts[dialect] = _engine("print", path, "--dialect", dialect, "--schedule", schedule)
    inputs = dict(zip("xy", drawn))
    for entry in graph["inputs"]:
        if entry["name"] not in inputs:
            inputs[entry["name"]] = (dict(model.named_parameters()) | constants)[entry["target"]]
    run, tensors = OpenClRunner().prepare(Program(texts["opencl"]), inputs)
    run()
    for name, exact in run_graph(graph, inputs, torch.float64).items():
        error = (tensors[name].double() - exact).abs().max() / (exact.abs().mean() + 1e-30)
        assert error <= _BOUND, (form, file.read_text())
    assert not spills(Nvrtc().compile(Program(texts["cuda"])))
    assert "precision=tf32" in texts["cuda"] and ENGINE.exists()
