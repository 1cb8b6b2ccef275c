# SPDX-License-Identifier: Apache-2.0
"""The problem is at fault: a value for the answer, carried by one exception."""

import traceback

# Exit code of a process whose device context is lost.
CONTEXT_LOST = 70
# Limit of JobFailure.diagnostics.
_MAX_DIAGNOSTICS = 64 * 1024


class ProblemFailure(Exception):
    """A JobFailure: stable reason, one sentence that says what to do, user line."""

    def __init__(self, reason, message, line=0, cause=None):
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.line = line
        self.cause = cause

    def to_json(self):
        """Returns the mtmc.v1.JobFailure message as a dictionary."""
        answer = {"reason": self.reason, "message": self.message, "line": self.line}
        if self.cause is not None:
            log = "".join(
                traceback.format_exception(type(self.cause), self.cause, self.cause.__traceback__)
            )
            answer["diagnostics"] = log[-_MAX_DIAGNOSTICS:]
        return answer


class Dropped(Exception):
    """No candidate can be judged on this workload; the message says why."""


def user_line(error, path):
    """Deepest line of file `path` that `error` or its causes passed through; 0 if none."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        lines = [
            line
            for frame, line in traceback.walk_tb(error.__traceback__)
            if frame.f_code.co_filename == path
        ]
        if lines:
            return lines[-1]
        error = error.__cause__ or error.__context__
    return 0


def summary(error):
    """First line of an exception, short enough for one sentence."""
    lines = str(error).strip().splitlines()
    text = lines[0].strip().rstrip(".") if lines else ""
    name = type(error).__name__
    return f"{name}: {text[:200]}" if text else name


def is_out_of_memory(error):
    """Whether `error` says that host or device memory ran out."""
    import torch

    if isinstance(error, (MemoryError, torch.cuda.OutOfMemoryError)):
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and (
        "can't allocate memory" in text or "out of memory" in text
    )
