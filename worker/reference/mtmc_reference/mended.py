# SPDX-License-Identifier: Apache-2.0
"""What PyTorch 2.11 traces otherwise than it runs."""

import contextlib

import torch
from torch._decomp import decompositions
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode


@contextlib.contextmanager
def mended_recurrence():
    """In the block, traced recurrent layers have the results of those that run, in time.

    The final states of an LSTM are traced with one more axis, which those of a run do
    not have. And a layer that stays one operator has the shapes of its results found
    step by step, which for 512 steps takes a minute: here one step tells them all.
    """
    lstm, rnn = decompositions.one_layer_lstm, decompositions.one_layer_rnn

    def mended_lstm(inp, hidden, *args, **kwargs):
        outputs, states = _shortened(lstm, inp, hidden, *args, **kwargs)
        return outputs, tuple(state.reshape(like.shape) for state, like in zip(states, hidden))

    def mended_rnn(inp, *args, **kwargs):
        return _shortened(rnn, inp, *args, **kwargs)

    decompositions.one_layer_lstm, decompositions.one_layer_rnn = mended_lstm, mended_rnn
    try:
        yield
    finally:
        decompositions.one_layer_lstm, decompositions.one_layer_rnn = lstm, rnn


def _shortened(layer, inp, *args, **kwargs):
    """The results of `layer`, of its first step alone where only their shapes matter."""
    is_recorded = get_proxy_mode() is not None
    if is_recorded or not isinstance(inp, FakeTensor) or inp.shape[0] < 2:
        return layer(inp, *args, **kwargs)
    outputs, states = layer(inp[:1], *args, **kwargs)
    return outputs.expand(inp.shape[0], *outputs.shape[1:]).contiguous(), states


@contextlib.contextmanager
def mended_numbers(module):
    """In the block, `float` and `int` in the user's module take a number out of a tensor as
    `.item()` does: a traced one, which Python's own would have to know."""
    added = {"float": _Float, "int": _Integer}
    added = {name: kind for name, kind in added.items() if name not in vars(module)}
    vars(module).update(added)
    try:
        yield
    finally:
        for name in added:
            del vars(module)[name]


class _AsItsBase(type):
    """A class that other ones and their objects belong to as they do to its base."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, cls.__base__)

    def __subclasscheck__(cls, subclass):
        return issubclass(subclass, cls.__base__)


class _Float(float, metaclass=_AsItsBase):
    def __new__(cls, *values):
        taken = _taken(values)
        return float(*values) if taken is None else torch.sym_float(taken)


class _Integer(int, metaclass=_AsItsBase):
    def __new__(cls, *values, **base):
        taken = _taken(values)
        return int(*values, **base) if taken is None else torch.sym_int(taken)


def _taken(values):
    """The traced number that is meant; None where Python's own class knows what to do."""
    value = values[0] if len(values) == 1 else None
    if isinstance(value, torch.Tensor):
        value = value.item()
    is_traced = isinstance(value, (torch.SymInt, torch.SymFloat))
    return value if is_traced else None
