# SPDX-License-Identifier: Apache-2.0
"""What a first problem would wait for, done before there is one.

Half of the modules that a load needs are imported where they are first used; a device
has its context, its libraries and our kernels made at the first call. So a small problem
is loaded, prepared and timed while nobody waits. Nothing of it stays but what PyTorch and
the driver keep.
"""

import contextlib
import gc

from . import rehearsal_problem
from .session import Session


def rehearse(scratch, device):
    """Loads a problem of our own on `device`, and forgets it; tells whether all went well.
    What fails here fails again with the user's problem, where somebody is told of it."""
    is_well = False
    with contextlib.closing(Session(scratch)) as session, contextlib.suppress(Exception):
        session.load({"path": rehearsal_problem.__file__, "device": device})
        # Of a hidden seed, which has other parameters.
        session.prepare({"workload": 1})
        session.time_baseline({"samples": 1, "warmups": 1, "isCold": True})
        is_well = True
    return is_well


def settle():
    """Takes all that was made so far, most of it PyTorch's own, for what stays: whoever looks
    for garbage later, as before each problem, need not look through a million objects again."""
    gc.collect()
    gc.freeze()
