# SPDX-License-Identifier: Apache-2.0
"""Honest kernels pass on every workload, cheats fail on at least one."""

import math

import pytest
import torch

_FOOTER = """
def get_inputs():
    return [{}]

def get_init_inputs():
    return []
"""
_PRODUCT = "return x @ self.w.t()"
_MATRIX = "self.w = nn.Parameter(torch.{}(32, 2048))"


def running_sum(x):
    """Sum over the last axis in FP32, one term after the other."""
    total = torch.zeros(x.shape[:-1])
    for k in range(x.shape[-1]):
        total = total + x[..., k]
    return total


def running_product(x, w):
    total = torch.zeros(x.shape[0], w.shape[0])
    for k in range(x.shape[1]):
        total = total + x[:, k : k + 1] * w[:, k]
    return total


def truncated(x, bits):
    """FP32 with this many bits of the mantissa: 10 is TF32, 7 is bf16."""
    step = 1 << (23 - bits)
    return ((x.contiguous().view(torch.int32) + step // 2) & ~(step - 1)).view(torch.float32)


def low_precision(bits):
    def candidate(t):
        x, w = (truncated(t[name], bits).double() for name in ("x", "w"))
        return (x @ w.t()).float()

    return candidate


def is_accepted(answers):
    return all(answer["isCorrect"] for answer in answers.values())


def problem(write_problem, forward, inputs, init="pass"):
    return write_problem(forward, init=init, footer=_FOOTER.format(inputs))


@pytest.mark.parametrize("kind", ["rand", "randn"])
def test_products_in_any_order_are_strict_and_low_precision_is_not(client, write_problem, kind):
    path = problem(write_problem, _PRODUCT, f"torch.{kind}(32, 2048)", _MATRIX.format(kind))
    client.load(path, precision="PRECISION_STRICT")

    orders = {
        "forward": lambda t: running_product(t["x"], t["w"]),
        "backward": lambda t: running_product(t["x"].flip(1), t["w"].flip(1)),
        "in 16 parts": lambda t: sum(
            running_product(t["x"][:, i::16], t["w"][:, i::16]) for i in range(16)
        ),
    }
    for order, candidate in orders.items():
        assert is_accepted(client.check_all(candidate)), order
    assert not is_accepted(client.check_all(low_precision(10)))

    client.load(path)
    assert not is_accepted(client.check_all(low_precision(7)))


def test_half_precision_holds_in_its_own_class(client, write_problem):
    path = problem(write_problem, _PRODUCT, "torch.randn(32, 2048)", _MATRIX.format("randn"))
    client.load(path, precision="PRECISION_HALF")

    answers = client.check_all(lambda t: (t["x"].bfloat16() @ t["w"].bfloat16().t()).float())

    assert is_accepted(answers), [answer["message"] for answer in answers.values()]
    assert not is_accepted(client.check_all(lambda t: torch.zeros(32, 32)))


def test_a_layer_norm_in_two_passes_is_strict_and_in_one_pass_is_wrong(client, write_problem):
    path = problem(write_problem, "return F.layer_norm(x, (1024,))", "torch.rand(32, 1024)")
    client.load(path, precision="PRECISION_STRICT")

    def candidate(t):
        x = t["x"]
        mean = (running_sum(x) / 1024)[:, None]
        variance = (running_sum((x - mean) ** 2) / 1024)[:, None]
        return (x - mean) * torch.rsqrt(variance + 1e-5)

    def one_pass(t):
        x = t["x"]
        mean = (running_sum(x) / 1024)[:, None]
        variance = (running_sum(x**2) / 1024)[:, None] - mean**2
        return (x - mean) * torch.rsqrt(variance + 1e-5)

    assert is_accepted(client.check_all(candidate))

    client.load(path)
    assert not is_accepted(client.check_all(one_pass))


def test_a_softmax_without_its_maximum_overflows(client, write_problem):
    client.load(problem(write_problem, "return torch.softmax(x, 1)", "torch.rand(32, 1024)"))

    naive = client.check_all(lambda t: t["x"].exp() / running_sum(t["x"].exp())[:, None])

    assert naive["public"]["isCorrect"] and naive["public"]["kernelbenchAllclose"]
    assert not naive["DISTRIBUTION_HEAVY_TAILED"]["isCorrect"]


@pytest.mark.parametrize(
    "forward, cheat",
    [
        # The inputs are never negative on the public workload.
        ("return torch.relu(x)", lambda t: t["x"]),
        ("return torch.abs(x)", lambda t: t["x"]),
        # Outputs of 1e-3 are zero to KernelBench's comparison at 1e-2.
        ("return torch.softmax(x, 1)", lambda t: torch.zeros_like(t["x"])),
        ("return torch.softmax(x, 1)", lambda t: torch.full_like(t["x"], 1 / 512)),
        # The expected value of a loss, and a sample of it.
        ("return (x**2).mean()", lambda t: torch.tensor(1 / 3)),
        ("return (x**2).mean()", lambda t: (t["x"][::2] ** 2).mean()),
        # The other axis.
        (
            "return (x * x.mean(0, keepdim=True)).mean()",
            lambda t: (t["x"] * t["x"].mean(1, keepdim=True)).mean(),
        ),
    ],
)
def test_cheats_that_pass_on_public_inputs_fail_on_hidden_ones(
    client, write_problem, forward, cheat
):
    client.load(problem(write_problem, forward, "torch.rand(512, 512)"))

    assert not is_accepted(client.check_all(cheat))


def test_labels_along_the_wrong_axis_fail(client, write_problem):
    source = (
        "import torch\nimport torch.nn as nn\nclass Model(nn.Module):\n"
        "    def forward(self, p, t):\n        return torch.clamp(1 - p * t, min=0).mean()\n"
    )
    inputs = "torch.rand(512, 512), torch.randint(0, 2, (512,)).float() * 2 - 1"
    client.load(write_problem(source=source + _FOOTER.format(inputs)))

    def hinge(t, targets):
        return torch.clamp(1 - t["p"] * targets, min=0).mean()

    assert is_accepted(client.check_all(lambda t: hinge(t, t["t"])))
    assert not is_accepted(client.check_all(lambda t: hinge(t, t["t"][:, None])))


def test_a_second_answer_must_agree_with_the_first_within_the_class(client, write_problem):
    client.load(problem(write_problem, "return torch.tanh(x)", "torch.rand(64, 64)"))

    def off_by(part):
        return lambda t: torch.tanh(t["x"]) * (1 + part)

    assert client.check(off_by(4e-5))["isCorrect"]
    assert "isUnrepeatable" not in client.check(off_by(-4e-5), isRepeat=True)
    assert client.check(off_by(8e-5))["isCorrect"]
    answer = client.check(off_by(-8e-5), isRepeat=True)
    assert answer["isCorrect"] and answer["isUnrepeatable"], answer


def test_in_half_precision_atomics_repeat_and_a_lost_update_does_not(client, write_problem):
    path = problem(write_problem, _PRODUCT, "torch.randn(32, 2048)", _MATRIX.format("randn"))
    client.load(path, precision="PRECISION_HALF")

    def split(order):
        def candidate(t):
            x, w = t["x"].bfloat16().float(), t["w"].bfloat16().float()
            total = torch.zeros(32, 32, dtype=torch.float16)
            for k in order:
                total += (x[:, k::16] @ w[:, k::16].t()).half()
            return total.float()

        return candidate

    assert client.check(split(range(16)))["isCorrect"]
    answer = client.check(split(range(15, -1, -1)), isRepeat=True)
    assert "isUnrepeatable" not in answer, answer
    assert client.check(split(range(16)))["isCorrect"]
    lost = client.check(split(range(15)), isRepeat=True)
    assert lost.get("isUnrepeatable") or not lost["isCorrect"]


@pytest.mark.parametrize(
    "change, is_correct",
    [
        (lambda y: y, True),
        (lambda y: torch.full_like(y, math.nan), False),
        (lambda y: y.nan_to_num(neginf=-1e30), False),
        (lambda y: y.nan_to_num(nan=0.0, neginf=-math.inf), False),
        (lambda y: torch.where(y.isinf(), -y, y), False),
        (lambda y: torch.where(torch.arange(64) == 63, math.nan, y), False),
    ],
    ids=["same", "all NaN", "no infinity", "no NaN", "other infinity", "one NaN more"],
)
def test_special_values_belong_where_the_reference_has_them(
    client, write_problem, change, is_correct
):
    forward = "y = x.clone()\ny[0, :4] = float('nan')\ny[1, :4] = float('-inf')\nreturn y * 2"
    client.load(problem(write_problem, forward, "torch.rand(64, 64)"))

    def honest(t):
        y = t["x"] * 2
        y[0, :4], y[1, :4] = math.nan, -math.inf
        return y

    assert client.check(lambda t: change(honest(t)))["isCorrect"] == is_correct


@pytest.mark.parametrize(
    "change",
    [lambda y: y.double(), lambda y: y.half(), lambda y: y[:1], lambda y: y.t(), lambda y: y[0]],
)
def test_another_type_or_shape_is_refused(client, write_problem, change):
    client.load(problem(write_problem, "return torch.tanh(x)", "torch.rand(32, 64)"))

    answer = client.check(lambda t: change(torch.tanh(t["x"])).contiguous())

    assert not answer["isCorrect"] and "output y is" in answer["message"]


def test_kernelbench_is_asked_about_inputs_that_it_could_draw(client, write_problem):
    client.load(problem(write_problem, "return x * 2", "torch.rand(32, 64)"))

    answers = client.check_all(lambda t: t["x"] * 2 + 0.3)

    assert not answers.pop("public")["kernelbenchAllclose"]
    # What becomes of NaN is told, and judges nobody.
    assert answers.pop("DISTRIBUTION_NONFINITE")["isCorrect"]
    assert all(answer["kernelbenchAllclose"] for answer in answers.values())
    assert not any(answer["isCorrect"] for answer in answers.values())


def test_close_values_may_change_places_in_an_argmax(client, write_problem):
    forward = "return torch.argmax(x @ self.w, dim=1)"
    init = "self.w = nn.Parameter(torch.randn(64, 8).repeat(1, 2) + torch.randn(64, 16) * 1e-9)"
    client.load(problem(write_problem, forward, "torch.randn(256, 64)", init))

    def candidate(dtype):
        return lambda t: torch.argmax(t["x"].to(dtype) @ t["w"].to(dtype), dim=1)

    assert client.check(candidate(torch.float64))["isCorrect"]
    assert not client.check(lambda t: (candidate(torch.float64)(t) + 1) % 16)["isCorrect"]
