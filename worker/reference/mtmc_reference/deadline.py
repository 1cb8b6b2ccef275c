# SPDX-License-Identifier: Apache-2.0
"""A limit on the time that the user's Python may take."""

import contextlib
import os
import signal

from .failure import ProblemFailure


@contextlib.contextmanager
def deadline(seconds, path):
    """Raises ProblemFailure TRACE_TIMEOUT in the block after `seconds`; 0 is no limit.

    Interrupts Python code only: a call that never returns from C is for the
    daemon, which kills the process. Main thread only.
    """

    def expire(_, frame):
        line = _user_line(frame, os.path.abspath(path))
        where = f"line {line}" if line else "the problem"
        raise ProblemFailure(
            "TRACE_TIMEOUT",
            f"{where} still ran after {seconds:g} s; make import, constructor and forward faster",
            line,
        )

    previous = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def parse_duration(text):
    """`1.5s`, as protobuf JSON writes a Duration, to seconds; 0 when it is empty."""
    return float(text.removesuffix("s")) if text else 0.0


def _user_line(frame, path):
    while frame is not None:
        if frame.f_code.co_filename == path:
            return frame.f_lineno
        frame = frame.f_back
    return 0
