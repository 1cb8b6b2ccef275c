# SPDX-License-Identifier: Apache-2.0
"""What PyTorch 2.11 traces otherwise than it runs."""

import contextlib

from torch._decomp import decompositions


@contextlib.contextmanager
def mended_lstm():
    """In the block, the final states of a traced LSTM have the shape of the first ones.

    They are traced with one more axis, which those of a run do not have.
    """
    one_layer = decompositions.one_layer_lstm

    def mended(inp, hidden, *args, **kwargs):
        outputs, states = one_layer(inp, hidden, *args, **kwargs)
        return outputs, tuple(state.reshape(like.shape) for state, like in zip(states, hidden))

    decompositions.one_layer_lstm = mended
    try:
        yield
    finally:
        decompositions.one_layer_lstm = one_layer
