# SPDX-License-Identifier: Apache-2.0
"""Networks with channels last are what PyTorch computes, whatever their shapes.

Kernels run on PoCL, with the mappings of a CPU and with those of a GPU, whose threads may follow
what they read; convolutions are the library's own.
"""

import json
import os
import random

import pytest
import torch
from judge import OpenClRunner, Program, ProblemFile, _engine, run_graph, trace
from program_runner import Nvrtc, spills

_SEED = int(os.environ.get("MTMC_TEST_SEED", 1))
_DRAWS = 10
# Largest error in parts of the result's mean magnitude.
_BOUND = 2e-4


class _Network:
    """Source of a network of one to three convolutions over two or three axes."""

    def __init__(self, random_):
        self._random = random_
        self.dims = random_.choice([2, 2, 3])
        self.channels, self.extent = random_.choice([1, 3, 8, 16]), random_.choice([6, 9, 16])
        self.shape = [random_.choice([1, 2]), self.channels] + [self.extent] * self.dims
        self.built, self.steps = [], []
        for number in range(random_.randint(1, 3)):
            self._add_convolution(number)
        if random_.random() < 0.4:
            self.steps.append(f"x = x.mean({tuple(range(2, 2 + self.dims))})")

    def _add_convolution(self, number):
        draw = self._random
        outputs = draw.choice([4, 8, 24])
        kernel, stride = draw.choice([1, 3]), draw.choice([1, 1, 2])
        kind = draw.choice(["Conv", "Conv", "ConvTranspose"])
        groups = 2 if self.channels % 2 == 0 and draw.random() < 0.3 else 1
        options = f"{kernel}, stride={stride}, padding={kernel // 2}, groups={groups}, bias={draw.random() < 0.5}"
        self.built.append(f"self.c{number} = torch.nn.{kind}{self.dims}d({self.channels}, {outputs}, {options})")
        self.steps.append(f"x = self.c{number}(x)")
        same = self.channels == outputs and stride == 1
        self.channels = outputs
        after = draw.choice(["", "x = torch.relu(x)", "x = torch.relu(x) * 0.5 + 0.1", "norm", "pool"])
        if after == "norm":
            self.built.append(f"self.n{number} = torch.nn.BatchNorm{self.dims}d({outputs})")
            after = f"x = torch.relu(self.n{number}(x))"
        if after == "pool":
            pooling = draw.choice(["max_pool", "avg_pool"])
            after = f"x = torch.nn.functional.{pooling}{self.dims}d(torch.tanh(x), 2, stride=1, padding=1)"
        self.steps += [step for step in [after] if step]
        if same and draw.random() < 0.5:
            self.steps[-1:] = ["before = x", self.steps[-1], "x = x + before if x.shape == before.shape else x"]

    def source(self):
        new_line = "\n        "
        return f"""import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {new_line.join(self.built)}
    def forward(self, x):
        {new_line.join(self.steps)}
        return x
def get_inputs():
    return [torch.randn({self.shape})]
def get_init_inputs():
    return []
"""


def _layout(path, *options):
    """The action that reorders most; there is one wherever there is a convolution."""
    listed = _engine("actions", path, *options).split("\n\n")[1].splitlines()
    found = [line for line in listed if "to channels last" in line and "FP32" not in line]
    return max(found, key=lambda line: line.startswith("reorder all "))


@pytest.mark.parametrize("index", range(_DRAWS))
def test_a_network_with_channels_last_is_the_network(tmp_path, index):
    file = tmp_path / "problem.py"
    file.write_text(_Network(random.Random(f"{_SEED} {index}")).source())
    problem = ProblemFile(str(file))
    model = problem.build_model(_SEED, torch.device("cpu"))
    drawn = problem.draw()
    graph, constants = trace(problem, model, drawn)[:2]
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(graph))
    values = dict(model.named_parameters()) | dict(model.named_buffers()) | constants
    inputs = {entry["name"]: values.get(entry.get("target")) for entry in graph["inputs"]}
    inputs |= {name: value for name, value in zip("x", drawn)}
    exact = run_graph(graph, {n: v.double() if v.is_floating_point() else v for n, v in inputs.items()}, torch.float64)
    for options in (["--dialect", "opencl"], ["--dialect", "opencl", "--warp-size", "32"]):
        text = _engine("print", path, *options, "--apply", _layout(path, *options))
        assert "layout=channels_last" in text
        run, tensors = OpenClRunner().prepare(Program(text), inputs)
        run()
        for name, value in exact.items():
            error = (tensors[name].double() - value).abs().max() / (value.double().abs().mean() + 1e-30)
            assert error <= _BOUND, (name, options, file.read_text())
    cuda = ["--dialect", "cuda"]
    assert not spills(Nvrtc().compile(Program(_engine("print", path, *cuda, "--apply", _layout(path, *cuda)))))
