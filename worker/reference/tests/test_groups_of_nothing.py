# SPDX-License-Identifier: Apache-2.0
"""What the reference answers where a mask or labels leave nothing of a group, where a divisor is
next to zero, where several are zero at once, and other values that few programs think of."""

import pytest
import torch
import torch.nn.functional as F
from mtmc_reference.distribution import DISTRIBUTIONS

_SOURCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, {arguments}):
        {body}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""


def _columns(fill, at_least):
    """The mean and the largest of what a mask leaves of each column."""

    def program(t):
        x, m = t["x"], t["m"]
        mean = (x * m).sum(0) / m.sum(0).clamp(min=at_least)
        return {"mean": mean, "most": torch.where(m, x, fill).amax(0)}

    return program


def _attention(instead):
    def program(t):
        scores = torch.where(t["m"], t["x"], -torch.inf)
        y = scores.softmax(1)
        return torch.where(t["m"].any(1, keepdim=True), y, instead)

    return program


def _loss(of_nothing, least=0.0):
    def program(t):
        labels, weight = t["labels"], t["l_weight"]
        counts = labels != -100
        rows = -t["x"].double().log_softmax(1)
        chosen = labels.clamp(min=0)
        each = weight.double()[chosen] * counts
        total = (rows.gather(1, chosen[:, None])[:, 0] * each).sum() / each.sum().clamp(min=least)
        return torch.where(counts.any(), total, of_nothing).float()

    return program


def _powers(power, product):
    return lambda t: {"p": power(t["a"], t["b"]), "q": product(t["a"], t["b"])}


def _with_norm(guard):
    def program(t):
        v = t["v"].double()
        y = t["x"].double() @ v.T / guard(v.square().sum(1))
        return (y * t["g"][:, 0].double()).float()

    return program


def _tempered(least):
    def program(t):
        number = t["t"]
        bounded = torch.where(number.abs() < least, number.sign() * least, number)
        return (t["x"] / bounded).softmax(-1)

    return program


def _quantized(saturated):
    def program(t):
        return (saturated((t["x"] * 16).round()) + t["z"]).clamp(-128, 127).to(torch.int8)

    return program


def _sums(dtype):
    return lambda t: (t["a"].to(dtype) * t["b"].to(dtype)).sum(1, dtype=dtype).long()


def _differences(bits):
    """Their sum in whole numbers of so many bits."""
    return lambda t: (t["a"].int() - t["b"].int()).abs().sum(1) & ((1 << bits) - 1)


def _order(descending):
    """Equal numbers in one order or the other."""

    def program(t):
        x = t["x"].long()
        place = torch.arange(x.shape[1])
        key = x * 1000 + (999 - place if descending else place)
        found = key.argsort(1)
        return {"v": t["x"].gather(1, found), "i": found}

    return program


def _gate(is_open):
    return lambda t: torch.where(is_open(t["x"].amax(1, keepdim=True)), t["x"] * 2, t["x"])


def _shrunk(sign):
    return lambda t: sign(t["x"]) * (t["x"].abs() - t["t"]).relu()


def _statistics(first):
    """The running mean, of which nothing may be left at the first batch."""

    def program(t):
        x, old = t["x"], t["n_running_mean"]
        mean, count = x.mean(0), t["n_num_batches_tracked"]
        y = (x - mean) / (x.var(0, correction=0) + 1e-5).sqrt() * t["n_weight"] + t["n_bias"]
        kept = torch.where(count == 0, first, 0.9) * old
        variance = 0.9 * t["n_running_var"] + 0.1 * x.var(0)
        return {"y": y, "m": kept + 0.1 * mean, "v": variance, "n": count + 1}

    return program


def _nearest(is_dead):
    """The nearest of the codes that are not dead."""

    def program(t):
        x, codes = t["x"], t["codes"]
        d = (x * x).sum(1, keepdim=True) - 2 * x @ codes.T + (codes * codes).sum(1)
        k = torch.where(is_dead(codes), torch.inf, d).argmin(1)
        return {"y": codes[k], "k": k}

    return program


def _history(first):
    """What was chosen before gets less, from the number `first` on."""

    def program(t):
        x = t["x"]
        seen = torch.zeros_like(x).scatter(1, t["i"], 1.0) > 0
        seen[:, :first] = False
        return torch.where(seen, x - t["p"], x)

    return program


_CODES = (
    "x",
    "d = (x * x).sum(1, keepdim=True) - 2 * x @ self.codes.T + (self.codes * self.codes).sum(1); "
    "k = d.argmin(1); return self.codes[k], k",
    "torch.randn(128, 8)",
    "self.codes = nn.Parameter(F.normalize(torch.randn(32, 8), dim=1))",
)
_HISTORY = (
    "x, i",
    "return torch.where(torch.zeros_like(x).scatter(1, i, 1.0) > 0, x - self.p, x)",
    "torch.randn(16, 64), torch.randint(1, 64, (16, 24))",
    "self.register_buffer('p', torch.tensor(1.2))",
)
_COLUMNS = (
    "x, m",
    "return (x * m).sum(0) / m.sum(0).clamp(min=1), "
    "x.masked_fill(~m, float('-inf')).amax(0)",
    "torch.randn(40, 24), torch.rand(40, 24) < 0.5",
    "pass",
)
_ATTENTION = (
    "x, m",
    "return x.masked_fill(~m, float('-inf')).softmax(1)",
    "torch.randn(40, 24), torch.rand(40, 24) < 0.5",
    "pass",
)
_LOSS = (
    "x, labels",
    "return self.l(x, labels)",
    "torch.randn(60, 20), torch.randint(0, 20, (60,))",
    "self.l = nn.CrossEntropyLoss(weight=torch.rand(20) + 0.5)",
)
_POWERS = (
    "a, b",
    "return torch.pow(a, b), torch.xlogy(a, b)",
    "torch.rand(40, 24), torch.rand(40, 24)",
    "pass",
)
_NORM = (
    "x",
    "return x @ (self.g * self.v / self.v.norm(dim=1, keepdim=True)).t()",
    "torch.randn(30, 40)",
    "self.v = nn.Parameter(torch.randn(24, 40))\n"
    "        self.g = nn.Parameter(torch.ones(24, 1))",
)
_TEMPERATURE = (
    "x",
    "return torch.softmax(x / self.t, -1)",
    "torch.randn(40, 64)",
    "self.t = nn.Parameter(torch.ones(1))",
)
_QUANTIZED = (
    "x",
    "return torch.clamp(torch.round(x * 16) + self.z, -128, 127).to(torch.int8)",
    "torch.randn(64, 64)",
    "self.register_buffer('z', torch.tensor(3, dtype=torch.int32))",
)
_BYTES = (
    "a, b",
    "return (a.int() * b.int()).sum(1)",
    "*(torch.randint(0, 64, (9, 601), dtype=torch.uint8) for _ in range(2)),",
    "pass",
)
_DIFFERENCES = (
    "a, b",
    "return (a.int() - b.int()).abs().sum(1)",
    "*(torch.randint(0, 64, (60, 601), dtype=torch.uint8) for _ in range(2)),",
    "pass",
)
_SORTED = (
    "x",
    "return torch.sort(x, dim=1, stable=True)",
    "torch.randint(0, 50, (20, 90), dtype=torch.int32)",
    "pass",
)
_GATE = (
    "x",
    "m = x.amax(1, keepdim=True)\n        n = (x > 0).sum(1, keepdim=True)\n"
    "        return torch.where(m > 6, x * 2, torch.where(n == 64, x, x))",
    "torch.randn(50, 64)",
    "pass",
)
_SHRUNK = (
    "x",
    "return torch.sign(x) * torch.relu(x.abs() - self.t)",
    "torch.randn(40, 64)",
    "self.t = nn.Parameter(torch.tensor(0.5))",
)
_STATISTICS = (
    "x",
    "return self.n(x)",
    "torch.randn(40, 16)",
    "self.n = nn.BatchNorm1d(16)",
)
_CASES = {
    "an empty column is divided by zero": (_COLUMNS, _columns(-torch.inf, 0)),
    "an empty column has a largest": (_COLUMNS, _columns(-3e38, 1)),
    "an empty row is zero": (_ATTENTION, _attention(0.0)),
    "a loss of nothing is zero": (_LOSS, _loss(0.0)),
    "weights of one at least": (_LOSS, _loss(torch.nan, 1.0)),
    "a power by logarithms": (
        _POWERS,
        _powers(lambda a, b: torch.exp2(b * a.log2()), torch.xlogy),
    ),
    "a product with a logarithm": (_POWERS, _powers(torch.pow, lambda a, b: a * b.log())),
    "a norm with a summand": (_NORM, _with_norm(lambda square: square.sqrt() + 1e-6)),
    "a norm with a bound": (_NORM, _with_norm(lambda square: square.sqrt().clamp(min=1e-4))),
    "a square with a summand": (_NORM, _with_norm(lambda square: (square + 1e-12).sqrt())),
    "a temperature with a bound": (_TEMPERATURE, _tempered(0.01)),
    "saturated to 16 bits": (_QUANTIZED, _quantized(lambda y: y.clamp(-32768, 32767))),
    "products of bytes in FP32": (_BYTES, _sums(torch.float32)),
    "differences of bytes in 16 bits": (_DIFFERENCES, _differences(16)),
    "the last of equal ones first": (_SORTED, _order(descending=True)),
    "not below for below": (_GATE, _gate(lambda most: most >= 6)),
    "a gate that opens late": (_GATE, _gate(lambda most: most > 6.5)),
    "zero has a sign": (_SHRUNK, _shrunk(lambda x: torch.where(x < 0, -1.0, 1.0))),
    "a first batch": (_STATISTICS, _statistics(0.0)),
    "a code that begins with zero": (_CODES, _nearest(lambda codes: codes[:, 0] == 0)),
    "a long code": (_CODES, _nearest(lambda codes: codes.norm(dim=1) > 5)),
    "zero for padding": (_HISTORY, _history(1)),
}
_HONEST = {
    "columns": (_COLUMNS, _columns(-torch.inf, 1)),
    "rows": (_ATTENTION, _attention(torch.nan)),
    "loss": (_LOSS, _loss(torch.nan)),
    "powers": (_POWERS, _powers(torch.pow, torch.xlogy)),
    "norm": (_NORM, _with_norm(torch.sqrt)),
    "temperature": (_TEMPERATURE, _tempered(0.0)),
    "quantized": (_QUANTIZED, _quantized(lambda y: y)),
    "bytes": (_BYTES, _sums(torch.int32)),
    "differences": (_DIFFERENCES, _differences(32)),
    "sorted": (_SORTED, _order(descending=False)),
    "gate": (_GATE, _gate(lambda most: most > 6)),
    "shrunk": (_SHRUNK, _shrunk(torch.sign)),
    "statistics": (_STATISTICS, _statistics(0.9)),
    "codes": (_CODES, _nearest(lambda codes: torch.zeros(len(codes), dtype=torch.bool))),
    "history": (_HISTORY, _history(0)),
}


def _refused_on(client, write_problem, case):
    (arguments, body, inputs, init), program = case
    parts = {"arguments": arguments, "body": body, "inputs": inputs, "init": init}
    found = client.load(write_problem(source=_SOURCE.format(**parts)))
    names = [entry["name"] for entry in found["graph"]["outputs"]]

    def named(t):
        answer = program(t)
        values = list(answer.values()) if isinstance(answer, dict) else [answer]
        return dict(zip(names, values))

    answers = {}
    for number, name in enumerate(["public", "hidden 1", "hidden 2", *DISTRIBUTIONS]):
        workload = (number,) if number < 3 else (98 + number, name)
        answers[name] = client.check(named, *workload)
    return [name for name, answer in answers.items() if answer and not answer["isCorrect"]]


@pytest.mark.parametrize("name", _CASES)
def test_a_program_that_forgets_a_special_answer_is_refused(client, write_problem, name):
    refused = _refused_on(client, write_problem, _CASES[name])

    assert refused and ("public" in refused) == (_CASES[name][0] is _SORTED)


@pytest.mark.parametrize("name", _HONEST)
def test_one_that_has_them_is_accepted(client, write_problem, name):
    assert not _refused_on(client, write_problem, _HONEST[name])
