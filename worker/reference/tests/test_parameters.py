# SPDX-License-Identifier: Apache-2.0
"""States of a model: which workload has which, and what other numbers keep."""

import pytest
import torch
from mtmc_reference import kept_values, parameters, share
from mtmc_reference.distribution import DISTRIBUTIONS, MIXED, PARAMETERS_ONE, PARAMETERS_ZERO

_GATES = "self.g = nn.Parameter(torch.ones(()))\nself.b = nn.Parameter(torch.zeros(16))"
_LINEAR = "self.fc = nn.Linear(16, 8)"
_NUMBERS = [(1, "DISTRIBUTION_UNSPECIFIED"), (2, "DISTRIBUTION_UNSPECIFIED")]
_NUMBERS += list(enumerate(DISTRIBUTIONS, start=101))


def tensors(client, seed=0, name="DISTRIBUTION_UNSPECIFIED", **request):
    """Tensors by name of one workload; None where it is dropped."""
    request = {"workload": seed, "distribution": name, **request}
    prepared = client.session.prepare(request)
    if "dropped" in prepared:
        return None
    with share.opened(prepared["inputs"], torch.device("cpu")) as found:
        return {key: value.clone() for key, value in found.items()}


def test_every_hidden_workload_has_other_parameters_than_the_public_one(client, write_problem):
    client.load(write_problem("return self.fc(x)", init=_LINEAR))
    public = tensors(client)

    for seed, name in _NUMBERS:
        hidden = tensors(client, seed, name)
        for key in ("fc_weight", "fc_bias"):
            # A mixture leaves some as they are.
            is_free = hidden is None or name == MIXED
            assert is_free or not torch.equal(hidden[key], public[key]), (name, key)
    fresh = tensors(client, 1000, salt="77")
    assert not torch.equal(fresh["fc_weight"], public["fc_weight"])


def test_the_public_workload_has_the_models_own_parameters_again(client, write_problem):
    client.load(write_problem("return self.fc(x)", init=_LINEAR))
    state = client.session._loaded._model.state_dict()
    own = {name: value.clone() for name, value in state.items()}
    tensors(client, 1)

    assert torch.equal(tensors(client)["fc_weight"], own["fc.weight"])
    assert all(torch.equal(value, own[name]) for name, value in state.items())


def test_neighbours_have_different_parameters(client, write_problem):
    client.load(write_problem("return self.fc(x)", init=_LINEAR))

    assert not torch.equal(tensors(client, 1)["fc_weight"], tensors(client, 2)["fc_weight"])


def test_all_parameters_are_zero_or_one(client, write_problem):
    client.load(write_problem("return self.fc(x)", init=_LINEAR))

    zero, one = tensors(client, 113, PARAMETERS_ZERO), tensors(client, 114, PARAMETERS_ONE)

    assert not zero["fc_weight"].any() and not zero["fc_bias"].any()
    assert (one["fc_weight"] == 1).all() and (one["fc_bias"] == 1).all()


def test_running_statistics_are_other_ones_and_variances_stay_positive(client, write_problem):
    client.load(write_problem("return self.norm(x)", init="self.norm = nn.BatchNorm1d(16)"))

    found = tensors(client, 1)

    assert found["norm_running_mean"].std() > 0 and found["norm_running_var"].std() > 0
    assert (found["norm_running_var"] > 0).all()
    assert found["norm_num_batches_tracked"] > 0
    assert found["norm_weight"].std() > 0.1 and found["norm_bias"].std() > 0.1


def test_a_state_has_parameters_far_from_the_constructors(client, write_problem):
    client.load(write_problem("return x * self.g + self.b", init=_GATES))

    near, far = tensors(client, 1), tensors(client, 2)
    if near["b"].abs().max() > 10:
        near, far = far, near

    assert near["b"].abs().max() <= 1 and near["g"].abs() < 2
    # So far that its exponential is no FP32 number.
    assert far["b"].abs().max() > 100 and (far["g"] > 0) != (near["g"] > 0)


def test_a_state_has_pruned_rows_in_all_tensors_of_a_layer(client, write_problem):
    client.load(write_problem("return self.fc(x)", init="self.fc = nn.Linear(16, 64)"))

    pruned = min((tensors(client, seed) for seed in (1, 2)), key=lambda t: t["fc_weight"].abs().max())
    weight, bias = pruned["fc_weight"], pruned["fc_bias"]

    rows = (weight == 0).all(1)
    both = rows & (bias == 0)
    assert 0 < rows.sum() < 16
    # Some in both, and some in one of them alone, whose other has a size.
    assert (bias[rows].abs() > 1e-3).any()
    assert both.any() and bias[rows].any() and (bias[~rows] == 0).any()
    minute = ~rows & (weight.abs().amax(1) < 1e-4)
    assert minute.any() and (bias[minute].abs() < 1e-4).all()
    assert not bias[0] and not bias[-1] and bias.count_nonzero() > 32
    columns = weight[~rows & ~minute]
    assert ((columns[:, 1::2] == 0).all(1)).any() and ((columns[:, ::2] == 0).all(1)).any()
    # What begins with zeros does not end with them.
    assert (weight[0] == 0).any() and weight[0].any()
    assert ((weight[:, 0] == 0) & ~rows).any()


def test_no_row_is_zero_where_the_reference_divides_by_its_norm(client, write_problem):
    init = "self.w = nn.Parameter(torch.randn(32, 16))"
    client.load(write_problem("return x @ (self.w / self.w.norm(dim=1, keepdim=True)).T", init=init))

    norms = torch.stack([tensors(client, seed)["w"].norm(dim=1) for seed in (1, 2)])

    assert (norms > 0).all() and 0 < (norms < 1e-3).sum() < 8


def test_what_may_not_be_zero_is_minute_instead(client, write_problem):
    init = "self.t = nn.Parameter(torch.tensor(1.0))\nself.w = nn.Parameter(torch.randn(24, 16))"
    forward = "return (x / self.t) @ (self.w / self.w.norm(dim=1, keepdim=True)).T"
    found = client.load(write_problem(forward, init=init))

    zero = tensors(client, 113, PARAMETERS_ZERO)
    norms = zero["w"].norm(dim=1)
    assert PARAMETERS_ZERO not in found["droppedDistributions"]
    assert 1e-4 < zero["t"].abs() < 0.01
    assert (norms > 0).all() and norms.min() < 1e-6 and norms.max() < 1e-2


def test_a_gain_is_as_usual_where_a_norm_may_not_be_zero(client, write_problem):
    init = "self.g = nn.Parameter(torch.ones(24))\nself.w = nn.Parameter(torch.randn(24, 16))"
    forward = "return x @ (self.w / self.w.norm(dim=1, keepdim=True)).T * self.g"
    client.load(write_problem(forward, init=init))

    assert tensors(client, 113, PARAMETERS_ZERO)["g"].abs().min() > 0.1


def test_a_counter_is_zero_where_what_it_has_counted_is_not(client, write_problem):
    client.load(write_problem("return self.norm(x)", init="self.norm = nn.BatchNorm1d(16)"))

    one = tensors(client, 114, PARAMETERS_ONE)

    assert one["norm_num_batches_tracked"] == 0 and (one["norm_running_mean"] == 1).all()


@pytest.mark.parametrize("number", range(8))
def test_a_row_of_filters_has_no_middle_in_one_layer_alone(client, write_problem, number):
    init = "self.c = nn.Conv1d(4, 6, 3)"
    client.load(write_problem("return self.c(x.view(8, 4, 16))", init=init))

    weights = [tensors(client, seed)["c_weight"] for seed in (1, 2)]

    has_none = [(w[:, :, 1] == 0).all(1) & (w.abs() > 1e-3).any(2).any(1) for w in weights]
    assert any(rows.any() for rows in has_none)


def test_a_single_number_is_small_in_one_state_and_has_the_other_sign(client, write_problem):
    init = "self.t = nn.Parameter(torch.tensor(1.0))"
    client.load(write_problem("return F.softmax(x / self.t, dim=-1)", init=init))

    found = [tensors(client, seed)["t"].item() for seed in (1, 2)]

    assert min(found) < 0 < max(found) and min(map(abs, found)) < 0.6


def test_what_may_not_leave_its_range_is_other_within_it(client, write_problem):
    init = "self.register_buffer('a', torch.linspace(0.99, 0.3, 16))"
    client.load(write_problem("return x * (1 - self.a).sqrt() + self.a.sqrt()", init=init))

    public, *others = [tensors(client, seed)["a"] for seed in range(4)]

    for a in others:
        assert not torch.equal(a, public) and (0 < a).all() and (a < 1).all()
    assert min(a.min() for a in others) < 0.25 and max(a.max() for a in others) > 0.9975


def test_one_state_has_neither_zeros_nor_far_elements(client, write_problem):
    client.load(write_problem("return self.fc(x)", init=_LINEAR))

    w, public = tensors(client, 3)["fc_weight"], tensors(client)["fc_weight"]

    assert not torch.equal(w, public)
    assert (w != 0).all() and w.abs().max() <= 1.31 * public.abs().max()


def test_a_counter_goes_beyond_32_bits(client, write_problem):
    init = "self.register_buffer('n', torch.tensor(0))"
    client.load(write_problem("return x, self.n + 1", init=init))

    assert max(tensors(client, seed)["n"].item() for seed in (1, 2)) > 1 << 32


def test_variances_are_below_what_guards_add_and_far_above(client, write_problem):
    init = "self.register_buffer('v', torch.rand(16) + 0.5)"
    client.load(write_problem("return x / torch.sqrt(self.v + 1e-5)", init=init))

    states = [tensors(client, seed)["v"] for seed in (1, 2)]
    far = max(states, key=torch.Tensor.max)

    assert 0 < far.min() < 1e-5 and far.max() > 1e5
    assert min(states, key=torch.Tensor.max).min() > 0.1


def test_parameters_stay_near_where_the_reference_is_not_defined_far_out(client, write_problem):
    client.load(write_problem("return x * self.g.exp() / self.b.exp().sum()", init=_GATES))

    assert max(tensors(client, seed)["b"].abs().max() for seed in (1, 2)) < 80


def test_whole_numbers_that_were_all_equal_are_any_others(client, write_problem):
    init = "self.register_buffer('z', torch.zeros(16, dtype=torch.int32))"
    client.load(write_problem("return x * (self.z & 255)", init=init))

    found = [tensors(client, seed)["z"] for seed in (1, 2)]

    assert all(len(z.unique()) > 8 for z in found)
    assert max(z.abs().max() for z in found) > 255


def test_equal_indices_in_a_buffer_become_all_that_are_legal(client, write_problem):
    init = "self.register_buffer('i', torch.zeros(64, dtype=torch.int64))"
    client.load(write_problem("return x[:, self.i]", init=init))

    assert len(tensors(client, 1)["i"].unique()) > 8


def test_a_mask_in_a_buffer_stays_a_mask(client, write_problem):
    init = "self.register_buffer('m', torch.ones(16, 16).tril())"
    client.load(write_problem("return x @ self.m", init=init))

    mask = tensors(client, 1)["m"]

    assert not torch.equal(mask, torch.ones(16, 16).tril())
    assert set(mask.unique().tolist()) == {0, 1}


def test_indices_in_a_buffer_stay_legal(client, write_problem):
    init = "self.register_buffer('i', torch.arange(16))"
    client.load(write_problem("return x[:, self.i]", init=init))

    for seed, name in ((1, "DISTRIBUTION_UNSPECIFIED"), (114, PARAMETERS_ONE)):
        places = tensors(client, seed, name)["i"]
        assert not torch.equal(places, torch.arange(16))
        assert 0 <= places.min() and places.max() < 16


@pytest.mark.parametrize(
    "init",
    [
        "self.t = torch.ones(16)",
        "self.register_buffer('t', torch.ones(16), persistent=False)",
    ],
    ids=["plain tensor", "buffer that is not saved"],
)
def test_tensors_that_no_checkpoint_has_stay(client, write_problem, init):
    client.load(write_problem("return x * self.t", init=init))

    values = [v for k, v in tensors(client, 1).items() if k != "x"]
    assert len(values) == 1 and torch.equal(values[0], torch.ones(16))


def test_shared_parameters_stay_equal(client, write_problem):
    init = "self.a = nn.Linear(16, 16)\nself.b = nn.Linear(16, 16)\nself.b.weight = self.a.weight"
    client.load(write_problem("return self.b(self.a(x))", init=init))
    client.check(lambda t: t["x"], 1)

    model = client.session._loaded._model
    with client.session._loaded._execution.in_state("first"):
        assert torch.equal(model.a.weight, model.b.weight)


def test_a_tensor_without_other_legal_values_stays_and_is_named(client, write_problem):
    init = (
        "self.register_buffer('k', torch.tensor([4., 1., 1., 4.]))\n"
        "self.w = nn.Parameter(torch.randn(16))"
    )
    same = "(self.k == torch.tensor([4., 1., 1., 4.])).all()"
    forward = f"return x * self.w / {same}"
    found = client.load(write_problem(forward, init=init))

    assert list(found["fixedInputs"]) == ["k"]
    assert not torch.equal(tensors(client, 1)["w"], tensors(client)["w"])
    assert torch.equal(tensors(client, 1)["k"], tensors(client)["k"])


def test_each_tensor_without_other_legal_values_is_found_among_many(client, write_problem):
    init = (
        "for n in 'abcdefgh':\n"
        "    self.register_buffer(n, torch.tensor([4., 1., 1., 4.]))"
    )
    same = "(self.{} == torch.tensor([4., 1., 1., 4.])).all()"
    others = " + ".join(f"self.{name}.sum()" for name in "abdefh")
    forward = f"return x / {same.format('c')} / {same.format('g')} + {others}"

    found = client.load(write_problem(forward, init=init))

    assert sorted(found["fixedInputs"]) == ["c", "g"]


def test_a_program_that_bakes_the_public_weights_is_refused(client, write_problem):
    client.load(write_problem("return self.fc(x)", init=_LINEAR))
    public = tensors(client)

    def candidate(weights):
        def run(t):
            w = weights or t
            return (t["x"].double() @ w["fc_weight"].double().T + w["fc_bias"]).float()

        return run

    assert client.check(candidate(public))["isCorrect"]
    assert not client.check(candidate(public), 1)["isCorrect"]
    assert not client.check(candidate(public), 2)["isCorrect"]
    assert client.check(candidate(None), 1)["isCorrect"]


def test_a_program_that_leaves_out_a_bias_of_zero_is_refused(client, write_problem):
    init = "self.fc = nn.Linear(16, 8)\nnn.init.zeros_(self.fc.bias)"
    client.load(write_problem("return self.fc(x)", init=init))
    product = lambda t: (t["x"].double() @ t["fc_weight"].double().T).float()

    assert client.check(product)["isCorrect"]
    assert not client.check(product, 1)["isCorrect"]


def test_states_are_shared_once(client, write_problem):
    client.load(write_problem("return self.fc(x)", init=_LINEAR))

    def number(seed):
        inputs = client.session.prepare({"workload": seed})["inputs"]
        return {entry["name"]: entry.get("content") for entry in inputs}["fc_weight"]

    assert number(1) == number(1) == number(4)
    assert len({number(seed) for seed in range(4)}) == 4


def test_values_of_a_state_are_kept_as_far_as_there_is_room(client, write_problem, monkeypatch):
    client.load(write_problem("return self.fc(x)", init="self.fc = nn.Linear(16, 16)"))
    states = client.session._loaded._states
    size = (16 * 16 + 16) * 4

    def kept():
        return states._kept.states()

    def enter(*names):
        for name in names:
            with states.applied(name):
                pass

    monkeypatch.setattr(kept_values, "_MOST_BYTES", 3 * size)
    states._kept.forget_all()
    enter(parameters.FIRST, parameters.ZERO, parameters.SECOND)
    assert kept() == {parameters.FIRST, parameters.ZERO, parameters.SECOND}
    enter(parameters.ONE)
    assert kept() == {parameters.FIRST, parameters.ONE, parameters.SECOND}
    monkeypatch.setattr(kept_values, "_MOST_BYTES", size // 2)
    enter(parameters.THIRD)
    assert kept() == {parameters.THIRD}
    monkeypatch.setattr(kept_values, "_MOST_ALONE_BYTES", size // 2)
    enter(parameters.ZERO)
    assert kept() == {parameters.THIRD}
