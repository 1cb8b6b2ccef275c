# SPDX-License-Identifier: Apache-2.0
"""Honest FP32 sums in any usual order are within the bound, and cheats are not."""

import contextlib

import numpy
import pytest
import torch
import torch.nn.functional as F
from mtmc_reference import sum_rounding
from mtmc_reference.distribution import DISTRIBUTIONS
from mtmc_reference.rounding import Disturbed, unit_of

_FOOTER = """
def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""


def running_sums(values, axis=0):
    """FP32 running sums, one addition after the other."""
    return numpy.cumsum(values, axis=axis, dtype=numpy.float32)


def sum_of(order):
    """A candidate that adds all elements one by one in an order of its own."""

    def candidate(t):
        return torch.tensor(running_sums(order(t["x"].numpy()).reshape(-1))[-1])

    return candidate


ORDERS = {
    "memory": lambda x: x,
    "columns": lambda x: x.T.copy(),
    "reversed": lambda x: x.reshape(-1)[::-1],
    "arrival": lambda x: numpy.random.default_rng(1).permutation(x.reshape(-1)),
    "strided": lambda x: x.reshape(-1, 64).T.copy(),
}


@pytest.fixture
def load(client, write_problem):
    """Loads a problem of one line over the inputs that another one draws."""

    def load(forward, inputs):
        path = write_problem(f"return {forward}", footer=_FOOTER.format(inputs=inputs))
        return client.load(path)

    return load


def rejected(answers):
    return {
        name: answer["message"] for name, answer in answers.items() if not answer["isCorrect"]
    }


@pytest.mark.parametrize(
    "forward, shape, factor",
    [
        ("x.sum()", (128, 129), 1),
        ("x.sum((0, 1))", (512, 1024), 1),
        ("x.mean() * 100", (512, 1024), 100 / (512 * 1024)),
    ],
)
def test_a_sum_in_any_order_is_honest(load, client, forward, shape, factor):
    load(forward, f"torch.randn({shape})")

    for order in ORDERS.values():
        answers = client.check_all(lambda t, order=order: sum_of(order)(t) * factor)
        assert not rejected(answers)


@pytest.mark.parametrize(
    "cheat",
    [
        lambda t: torch.zeros(()),
        lambda t: t["x"][::2].sum() * 2,
        lambda t: t["x"][:, :100].sum() * 1.29,
        lambda t: t["x"].cumsum(0)[-1].bfloat16().sum().float(),
    ],
    ids=["zeros", "every second row", "most columns", "bf16"],
)
def test_no_cheat_is_within_the_bound_of_a_sum(load, client, cheat):
    load("x.sum()", "torch.randn(128, 129)")

    assert len(rejected(client.check_all(cheat))) >= 4


def test_a_running_sum_is_honest_and_one_in_half_precision_is_not(load, client):
    load("torch.cumsum(x, 1)", "torch.randn(2, 5003)")

    def in_order(t):
        return torch.tensor(running_sums(t["x"].numpy(), axis=1))

    assert not rejected(client.check_all(in_order))
    assert len(rejected(client.check_all(lambda t: torch.cumsum(t["x"].half().float(), 1)))) >= 4
    are_zero = []

    def zero(t):
        are_zero.append(not t["x"].any())
        return torch.zeros_like(t["x"])

    zeros = client.check_all(zero)
    # Of two special rows, both may be drawn as rows of zeros and of tiny elements; zeros are right
    # where the input of a mixed workload is.
    harmless = {"DISTRIBUTION_NONFINITE", "DISTRIBUTION_SPECIAL_ROWS"}
    harmless |= {name for name, is_zero in zip(zeros, are_zero) if is_zero}
    assert zeros.keys() - rejected(zeros) <= harmless


@pytest.mark.parametrize("values", [1, 2, 8])
@pytest.mark.parametrize("terms", [317, 5003, 60007])
def test_a_running_sum_of_few_values_drifts(terms, values):
    """Equal terms are rounded alike in a binade, so that their errors do not wander."""
    random = numpy.random.default_rng(terms)
    for _ in range(30):
        drawn = random.standard_normal(values).astype(numpy.float32)
        x = drawn[random.integers(0, values, terms)]
        exact = torch.from_numpy(x).double()
        sums = exact.cumsum(0)
        error = torch.from_numpy(running_sums(x)).double() - sums
        with Disturbed(unit_of(torch.float32)):
            disturbed = exact.cumsum(0)

        # A group of elements may be off by eight times what a disturbed run is.
        assert error.square().mean() <= 64 * (disturbed - sums).square().mean()


def test_running_statistics_that_cancel_are_honest(client, write_problem):
    """The old mean and the batch's are rounded before they cancel."""
    init = "self.n = nn.BatchNorm1d(16)"
    client.load(write_problem("return self.n(x)", init=init), randomizeIdentityParameters=True)

    def in_order(t):
        x, count = t["x"].numpy(), numpy.float32(len(t["x"]))
        part = numpy.float32(0.1)
        mean = running_sums(x)[-1] / count
        away = x - mean
        variance = running_sums(away * away)[-1] / count
        y = away / numpy.sqrt(variance + numpy.float32(1e-5))
        unbiased = variance * (count / (count - 1))
        rest = numpy.float32(0.9)
        return {
            "y": torch.from_numpy(y) * t["n_weight"] + t["n_bias"],
            "n_running_mean_new": t["n_running_mean"] * rest + torch.from_numpy(mean * part),
            "n_running_var_new": t["n_running_var"] * rest + torch.from_numpy(unbiased * part),
            "n_num_batches_tracked_new": t["n_num_batches_tracked"] + 1,
        }

    assert not rejected(client.check_all(in_order))


@pytest.mark.parametrize("momentum", [0.1, 1.0])
def test_a_batch_norm_disturbs_its_running_statistics(momentum):
    x = torch.randn(64, 5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3)) + 9
    old = -x.mean((0, 2)) * momentum / max(1 - momentum, 0.5)
    states = [(old.clone(), torch.ones_like(old)) for _ in range(2)]
    for state, context in zip(states, (Disturbed(unit_of(torch.float32)), contextlib.nullcontext())):
        with context:
            torch.nn.functional.batch_norm(x, *state, training=True, momentum=momentum)

    off = (states[0][0] - states[1][0]).abs()
    # Of the size of what cancels, 9 times the momentum, however little is left.
    least = 9 * momentum * unit_of(torch.float32)
    assert off.min() > least and off.max() < 500 * least
    changed = (states[0][1] - states[1][1]).abs()
    assert changed.min() > momentum * unit_of(torch.float32)


def test_a_batch_norm_that_only_reads_its_statistics_leaves_them():
    x, mean, variance = torch.randn(8, 5).double(), torch.zeros(5).double(), torch.ones(5).double()
    with Disturbed(unit_of(torch.float32)):
        torch.nn.functional.batch_norm(x, mean, variance, training=False)

    assert torch.equal(mean, torch.zeros_like(mean))
    assert torch.equal(variance, torch.ones_like(variance))


def test_a_product_that_adds_term_by_term_is_honest(client, write_problem):
    source = "import torch\nimport torch.nn as nn\nclass Model(nn.Module):\n"
    source += "    def forward(self, x, z):\n        return x @ z\n"
    inputs = "torch.randn(3, 16411), torch.randn(16411, 4)"
    client.load(write_problem(source=source + _FOOTER.format(inputs=inputs)))

    def in_order(t):
        terms = t["x"].T.numpy()[:, :, None] * t["z"].numpy()[:, None, :]
        return torch.tensor(running_sums(terms)[-1])

    assert not rejected(client.check_all(in_order))
    half = client.check_all(lambda t: t["x"].half().float() @ t["z"].half().float())
    assert len(rejected(half)) >= 3


def test_sorted_terms_that_cancel_are_disturbed_by_their_partial_sums():
    ramp = torch.linspace(-1, 1, 4096, dtype=torch.float64)
    unit = unit_of(torch.float32)

    with Disturbed(unit):
        sums = [ramp.sum(), ramp @ torch.ones_like(ramp), torch.cumsum(ramp, 0)[-1]]

    # Partial sums come to -1024, and each of the additions rounds by up to half a unit.
    for disturbed in sums:
        assert 1024 * unit < disturbed.abs() < 1024 * unit * 4096


def test_what_only_points_at_memory_leaves_it_as_it_is():
    weights = torch.randn(64)
    before = weights.clone()

    # As a recurrent layer of cuDNN does with all its weights.
    with Disturbed(unit_of(torch.float32)):
        torch.empty(0).set_(weights.untyped_storage(), 0, (8, 8), (8, 1))

    assert torch.equal(weights, before)


def test_no_sum_has_luck():
    terms = torch.rand(512, 4096, dtype=torch.float64)
    with Disturbed(unit_of(torch.float32)):
        totals = terms.sum(1)

    off = (totals / terms.sum(1) - 1).abs() / unit_of(torch.float32)
    assert off.min() > 4096**0.5 and off.max() < 8 * 4096**0.5


@pytest.mark.parametrize("spread", [0.0, 1e-6])
def test_terms_that_are_nearly_equal_are_rounded_alike(spread):
    generator = numpy.random.default_rng(5)
    terms = 1.7 * (1 + spread * generator.standard_normal((64, 4096))).astype(numpy.float32)
    exact = torch.from_numpy(terms).double()
    off = (torch.from_numpy(running_sums(terms, axis=1)[:, -1]) - exact.sum(1)).abs()
    with Disturbed(unit_of(torch.float32)):
        sums = [exact.sum(1), exact @ torch.ones(4096, dtype=torch.float64)]

    # Hundreds of roundings: the square root of the number of terms is 64.
    assert (off / exact.sum(1)).min() > 200 * unit_of(torch.float32)
    for disturbed in sums:
        assert (off < (disturbed - exact.sum(1)).abs()).all()


def test_doubles_are_judged_on_every_distribution(load, client):
    found = load("torch.exp(-x * x) + 1", "torch.randn(33, 65, dtype=torch.float64)")

    assert set(found["droppedDistributions"].values()) <= {
        "no input to change",
        "there are no parameters",
    }
    assert not rejected(client.check_all(lambda t: torch.exp(-t["x"] ** 2) + 1))
    wrong = client.check_all(lambda t: torch.exp(-t["x"] ** 2) + 1.001)
    assert wrong.keys() - rejected(wrong) == {"DISTRIBUTION_NONFINITE"}


@pytest.mark.parametrize("wander", [0.0, torch.tensor(3.0), torch.linspace(0, 5, 60).view(3, 20)])
def test_the_scale_of_a_large_sum_is_found_in_pieces(monkeypatch, wander):
    total, squares = torch.randn(2, 3, 20).double()
    whole = sum_rounding.sum_scale(100, total, squares, wander, 0.25)

    monkeypatch.setattr(sum_rounding, "_PIECE", 7)

    torch.testing.assert_close(sum_rounding.sum_scale(100, total, squares, wander, 0.25), whole)


def test_every_piece_of_a_large_result_is_disturbed(monkeypatch):
    monkeypatch.setattr(sum_rounding, "_PIECE", 7)
    a, b = torch.randn(9, 64, dtype=torch.float64), torch.randn(64, 11, dtype=torch.float64)
    with Disturbed(unit_of(torch.float32)):
        disturbed = a @ b

    error = (disturbed - a @ b).abs()
    assert (error > 0).all() and error.max() < 1e-3


def test_of_equal_elements_others_are_picked():
    x = torch.zeros(4, 8)
    with torch.no_grad():
        values, places = x.topk(2)
        with Disturbed(unit_of(torch.float32)):
            found, others = x.topk(2)
            ordered, order = (-torch.arange(8.0)).sort()
            stable = x.sort(stable=True).indices
    assert torch.equal(values, found) and not torch.equal(places, others)
    assert torch.equal(order, torch.arange(7, -1, -1)) and ordered[0] == -7
    assert torch.equal(stable, torch.arange(8).expand(4, 8))


def test_picks_among_equal_ones_inside_of_a_model_are_free(client, write_problem):
    client.load(
        write_problem(
            "p, i = torch.softmax(self.g(x), 1).topk(2); "
            "y = torch.stack([e(x) for e in self.e], 1); "
            "return (p[..., None] * y.gather(1, i[..., None].expand(-1, -1, 16))).sum(1)",
            init="self.g = nn.Linear(16, 4); "
            "self.e = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))",
        )
    )

    def program(t):
        x = t["x"].double()
        scores = F.linear(x, t["g_weight"].double(), t["g_bias"].double()).softmax(1)
        # The last of equal ones, where a library may pick any.
        p, i = scores.flip(1).sort(dim=1, descending=True, stable=True)
        p, i = p[:, :2], 3 - i[:, :2]
        y = [F.linear(x, t[f"e_{n}_weight"].double(), t[f"e_{n}_bias"].double()) for n in range(4)]
        y = torch.stack(y, 1).gather(1, i[..., None].expand(-1, -1, 16))
        return (p[..., None] * y).sum(1).float()

    workloads = [(n,) for n in range(3)]
    workloads += [(100 + n, name) for n, name in enumerate(DISTRIBUTIONS, start=1)]
    workloads += [(317 + n, "DISTRIBUTION_MIXED") for n in range(12)]
    for workload in workloads:
        answer = client.check(program, *workload)
        assert answer is None or answer["isCorrect"], (workload, answer["message"])


@pytest.mark.parametrize("shape", [(64,), (5, 64), (3, 5, 64), (2, 3, 5, 64)])
def test_partial_sums_of_a_product_are_looked_at_along_it(shape):
    generator = torch.Generator().manual_seed(3)
    a = torch.randn(shape, generator=generator).sort(-1).values
    b = torch.randn(*shape[:-2], 64, *[4] * (len(shape) > 1), generator=generator).sort(-1).values
    axis = -2 if len(shape) > 1 else 0
    sums = [a[..., :n] @ b.narrow(axis, 0, n) for n in range(8, 64, 8)]

    found = sum_rounding._product_wander(a, b)

    torch.testing.assert_close(found, torch.stack(sums).abs().amax(0).square())
    assert sum_rounding._product_wander(a[..., :8], b.narrow(axis, 0, 8)) == 0.0


def test_a_part_of_a_long_sum_tells_how_many_terms_are_equal(monkeypatch):
    x = torch.randint(0, 50, (200, 500), generator=torch.Generator().manual_seed(1)).float()
    whole = sum_rounding._alike(x, [0, 1])

    monkeypatch.setattr(sum_rounding, "_ENOUGH_TERMS", 1 << 12)
    part = sum_rounding._alike(x, [0, 1])

    assert part.shape == whole.shape and abs(part - whole) < 0.1 * whole


def test_a_part_of_each_long_sum_tells_how_many_terms_are_equal(monkeypatch):
    x = torch.randint(0, 50, (4, 2000, 3), generator=torch.Generator().manual_seed(1)).float()
    whole = sum_rounding._alike(x, [1])

    monkeypatch.setattr(sum_rounding, "_ENOUGH_TERMS", 1 << 10)

    assert sum_rounding._enough(x, [1])[0].shape == (4, 286, 3)
    torch.testing.assert_close(sum_rounding._alike(x, [1]), whole, rtol=0.3, atol=0.0)


def _drawn_terms(kind, count, generator):
    draws = {
        "uniform": lambda: generator.random(count),
        "clipped": lambda: numpy.maximum(1 - 2 * generator.random(count), 0),
        "normal": lambda: generator.standard_normal(count),
        "equal": lambda: numpy.full(count, generator.uniform(0.5, 2)),
        "few values": lambda: generator.choice(generator.random(8), count),
        "sorted": lambda: numpy.sort(generator.standard_normal(count)),
        "steep": lambda: numpy.exp(3 * generator.standard_normal(count)),
        "one large": lambda: numpy.append(1e6, generator.random(count - 1)),
        "one large, equal ones": lambda: numpy.append(1e6, numpy.full(count - 1, 0.01)),
    }
    return draws[kind]().astype(numpy.float32)


@pytest.mark.parametrize("length", [300, 1 << 16, 1 << 22])
@pytest.mark.parametrize(
    "kind",
    ["uniform", "clipped", "normal", "equal", "few values", "sorted", "steep", "one large"]
    + ["one large, equal ones"],
)
def test_running_sums_of_any_terms_are_within_what_is_disturbed(kind, length):
    terms = _drawn_terms(kind, length, numpy.random.default_rng(7))
    longest = sum_rounding.MAX_TERMS
    parts = [running_sums(terms[i : i + longest])[-1] for i in range(0, length, longest)]
    exact = torch.from_numpy(terms).double()
    off = abs(float(numpy.sum(parts, dtype=numpy.float32)) - exact.sum())
    with Disturbed(unit_of(torch.float32)):
        disturbed = exact.sum()

    assert off < 4 * (disturbed - exact.sum()).abs()


@pytest.mark.parametrize("length", [1 << 20, 1 << 22])
def test_sums_longer_than_any_running_one_are_bound_as_well(length):
    terms = torch.rand(length, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    with Disturbed(unit_of(torch.float32)):
        mean = terms.mean()

    # A thousandth, and not the whole: every answer was right once.
    assert (mean / terms.mean() - 1).abs() < 1e-3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_mask_of_infinities_stays_one(dtype):
    scores = torch.tensor([[1.5, 2.5, -0.5], [0.5, 1.0, 2.0]], dtype=dtype)
    mask = torch.tensor([[0.0, -torch.inf, 0.0], [0.0, 0.0, -torch.inf]], dtype=dtype)

    with Disturbed(unit_of(torch.float32)):
        masked = scores + mask
        weights = masked.softmax(-1)

    assert torch.equal(masked.isinf(), mask.isinf()) and not masked.isnan().any()
    assert torch.equal(weights == 0, mask.isinf()) and weights.isfinite().all()
