# SPDX-License-Identifier: Apache-2.0
"""What an attempt may come to where "refused" is not the answer.

A judge takes the attempt's result and those of all attempts by name, and returns
why the cheat succeeded, or None.
"""

import math

from harness import (
    describe,
    failure_kind,
    is_accepted,
    median_seconds,
    shortest_seconds,
)


def refused(kinds):
    """One of the failures `kinds`."""

    def judge(result, _):
        if is_accepted(result):
            return describe(result)
        kind = failure_kind(result)
        return None if kind in kinds else f"expected {' or '.join(sorted(kinds))}: {describe(result)}"

    return judge


def accepted(result, _):
    """An honest program."""
    return None if is_accepted(result) else f"honest, but {describe(result)}"


def gains_nothing(twins, ratio):
    """It is accepted, and the time that is believed is at least `ratio` of the shortest
    sample of its honest twins."""

    def judge(result, results):
        if not is_accepted(result):
            return f"expected an honest time: {describe(result)}"
        honest = [results[twin] for twin in twins if is_accepted(results.get(twin, {}))]
        if not honest:
            return f"none of its twins {twins} has a time"
        mine, theirs = median_seconds(result), min(map(shortest_seconds, honest))
        if mine >= ratio * theirs:
            return None
        return f"{mine * 1e6:.1f} us are believed where an honest twin takes {theirs * 1e6:.1f} us"

    return judge


def refused_or_gains_nothing(kinds, other):
    """Refused, or without any gain."""

    def judge(result, results):
        return other(result, results) if is_accepted(result) else refused(kinds.split())(result, results)

    return judge


def refused_or_right(kinds):
    """Refused, or right whenever a timed output was checked: its condition never came
    true, or what it did changed nothing that anybody reads."""

    def judge(result, results):
        if not is_accepted(result):
            return refused(kinds.split())(result, results)
        return _unless(_checked_executions(result) > 0, "accepted, and no timed output was checked")

    return judge


def writes_every_time(result, results):
    """Refused, or right, because each output that it found was poisoned."""
    if not is_accepted(result):
        return refused({"WRONG_RESULT"})(result, results)
    return _unless(_checked_executions(result) > 0, "accepted, and no timed output was checked")


def is_cold(result, _):
    """Each sample came after a flush of the cache."""
    if not is_accepted(result):
        return f"expected an honest time: {describe(result)}"
    return _unless(result["evaluation"]["measurement"].get("is_cold"), "the samples are not cold")


def has_samples(least):
    """However long the first calls took, there are `least` samples."""

    def judge(result, _):
        if not is_accepted(result):
            return f"expected an honest time: {describe(result)}"
        count = len(result["evaluation"]["measurement"]["samples_seconds"])
        return _unless(count >= least, f"{count} samples decided")

    return judge


def has_positive_times(result, _):
    """No time or speedup is zero, negative, infinite or NaN."""
    if not is_accepted(result):
        return f"expected an honest time: {describe(result)}"
    evaluation = result["evaluation"]
    values = [*evaluation["measurement"]["samples_seconds"]]
    values += [comparison["speedup"] for comparison in evaluation["comparisons"]]
    bad = [value for value in values if not (math.isfinite(value) and value > 0)]
    return _unless(values and not bad, f"unusable times {bad[:3]}")


def has_baseline_of(twins, factor):
    """The shortest sample of its baseline lies among those of `twins`, within `factor`:
    what sabotages a baseline reaches every sample of it."""

    def judge(result, results):
        others = [results[twin] for twin in twins if is_accepted(results.get(twin, {}))]
        if not (is_accepted(result) and others):
            return f"expected an honest time: {describe(result)}"
        mine, times = _baseline_seconds(result), [_baseline_seconds(other) for other in others]
        is_same = min(times) / factor <= mine <= max(times) * factor
        return _unless(is_same, f"the baseline took {mine} s, beside honest ones {times} s")

    return judge


def has_comparisons(count):
    """Each of `count` baselines is compared with."""

    def judge(result, _):
        if not is_accepted(result):
            return f"expected an honest time: {describe(result)}"
        names = {comparison["baseline"] for comparison in result["evaluation"]["comparisons"]}
        return _unless(len(names) == count, f"compared with {sorted(names)} only")

    return judge


def shows_step(word):
    """The profile shows the library's step, so that nobody takes it for a kernel."""

    def judge(result, _):
        if not is_accepted(result):
            return f"expected an honest time: {describe(result)}"
        kernels = result["evaluation"].get("profile", {}).get("kernels", [])
        names = [kernel.get("kernel", "") for kernel in kernels]
        return _unless(any(word in name for name in names), f"the profile shows only {names}")

    return judge


def problem_is_flawed(result, results):
    """The problem itself is named as degenerate, or the program is refused."""
    if not is_accepted(result):
        return None if failure_kind(result) else describe(result)
    inspection = results.get("inspection:constant", {})
    marks = inspection.get("passingProbes", []) + inspection.get("flaws", [])
    return _unless(marks, "zeros pass, and the problem is not marked as degenerate")


def _unless(is_good, reason):
    return None if is_good else reason


def _checked_executions(result):
    return result["evaluation"].get("checks", {}).get("checked_executions", 0)


def _baseline_seconds(result):
    first = result["evaluation"]["comparisons"][0]
    return min(first["baseline_measurement"]["samples_seconds"])
