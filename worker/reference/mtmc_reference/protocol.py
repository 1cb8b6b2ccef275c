# SPDX-License-Identifier: Apache-2.0
"""Requests and responses: one line of protobuf JSON each."""

import json
import math
import os
import sys

from .failure import ProblemFailure, summary

# Request field to (method of Session, response field).
_METHODS = {
    "load": ("load", "loaded"),
    "prepare": ("prepare", "prepared"),
    "compare": ("compare", "compared"),
    "timeBaseline": ("time_baseline", "timed"),
    "release": ("release", "compared"),
}


def take_standard_streams():
    """Returns (requests, responses) and leaves the user harmless standard streams.

    What the user's code prints goes to standard error, and what it reads from
    standard input is empty, whether it goes through Python or not.
    """
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    responses = os.fdopen(os.dup(1), "w", encoding="utf-8")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    return requests, responses


def serve(session, requests, responses):
    """Answers requests until the stream ends; false when the device's context was lost.

    No answer is right after that one, so it `isLast`.
    """
    for line in requests:
        if not line.strip():
            continue
        response = answer(session, line)
        is_last = "failure" in response and session.is_lost()
        if is_last:
            response["isLast"] = True
        responses.write(json.dumps(_finite(response)) + "\n")
        responses.flush()
        if is_last:
            return False
    return True


def answer(session, line):
    """The response to one line, as a dictionary; never raises for a bad problem."""
    sequence = 0
    try:
        request = json.loads(line)
        sequence = request.get("sequence", 0)
        names = [name for name in _METHODS if name in request]
        if len(names) != 1:
            raise ProblemFailure("INVALID_REQUEST", "a request sets exactly one of its fields")
        method, field = _METHODS[names[0]]
        result = getattr(session, method)(request[names[0]])
        return {"sequence": sequence, field: result}
    except ProblemFailure as failure:
        return {"sequence": sequence, "failure": failure.to_json()}
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # A fault of ours must not end the process either.
        failure = ProblemFailure(
            "REFERENCE_FAILED", f"the reference process failed: {summary(error)}", 0, error
        )
        return {"sequence": sequence, "failure": failure.to_json()}


def _finite(value):
    """Replaces floats that JSON lacks by the strings that protobuf JSON has for them."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return value
