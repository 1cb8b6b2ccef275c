# SPDX-License-Identifier: Apache-2.0
"""A candidate's outputs against what is expected: mtmc.v1 Compared."""

import functools

import torch

from .compare import errors, float_spreads, is_allclose
from .distribution import NONFINITE
from .group_bounds import ZERO
from .groups import measured
from .nonfinite import remark
from .oracle import PRECISIONS, kernelbench_tolerance
from .tensor_type import data_type


class Comparison:
    """Compares outputs in the class `precision`, and with those of a run before.

    `specifications` are the outputs of the graph, the first `user_outputs` those that
    `forward` returns. Whether copies of that many bytes may be kept for a second run,
    `may_keep` tells. What NaN and infinities in the inputs lead to is judged if
    `judges_nonfinite`, and only told otherwise.
    """

    def __init__(
        self, specifications, user_outputs, precision, may_keep, judges_nonfinite=False
    ):
        self._specifications = specifications
        self._user_outputs = user_outputs
        self._precision = precision
        self._may_keep = may_keep
        self._judges_nonfinite = judges_nonfinite
        # Entry and outputs of the last comparison, if it may be repeated. The memory of
        # the outputs stays for those of the next one.
        self._last = None
        self._last_outputs = None

    def compare(self, entry, expectation, outputs, is_repeat):
        """Errors of `outputs`, by name, against the expectation of a prepared entry.

        Raises ValueError when an output is missing or has another type.
        """
        actual = [outputs.get(output["name"]) for output in self._specifications]
        for tensor, output in zip(actual, self._specifications):
            _require_form(tensor, output)
        if entry.key.distribution == NONFINITE and not self._judges_nonfinite:
            self._last = None
            return self._told(expectation, actual)
        answer, limits = self._judged(expectation, actual)
        if not answer["isCorrect"]:
            others = expectation.with_own_picks(actual)
            again = others and self._judged(expectation, others)
            if again and again[0]["isCorrect"]:
                (answer, limits), actual = again, others
        if is_repeat:
            self._compare_repeat(expectation, limits, actual, answer)
        self._remember(entry, actual)
        return answer

    def _judged(self, expectation, actual):
        """(Compared, bounds and group bounds by which it was judged) of outputs in graph order."""
        distances, groups, bounds, group_bounds = expectation.judge(actual, self._precision)
        needed = [distance.tolerance for distance in distances]
        whole = _whole_number_classes(expectation, actual, needed)
        needed = [
            0.0 if self._precision in whole.get(index, ()) else t for index, t in enumerate(needed)
        ]
        nearness = functools.cache(
            lambda index: expectation.is_near(index, actual[index])
        )
        admitted = [0.0 if index in whole else t for index, t in enumerate(needed)]
        by_element = bounds.satisfied(admitted, nearness, self._precision)
        by_group = (
            _classes_of_groups(group_bounds, groups, self._precision) if by_element else ()
        )
        satisfied = [
            name
            for name in by_element
            if name in by_group and all(name in classes for classes in whole.values())
        ]
        allowed = [
            bounds.allowed(self._precision, index, t, nearness) for index, t in enumerate(needed)
        ]
        reports = [
            _report(output, distance, t, most, group_bounds.verdict(self._precision, index, each))
            for index, (output, distance, t, most, each) in enumerate(
                zip(self._specifications, distances, needed, allowed, groups)
            )
        ]
        is_correct = self._precision in satisfied
        answer = {
            "isCorrect": is_correct,
            "errors": reports,
            "satisfied": satisfied,
            "kernelbenchAllclose": self._is_kernelbench_allclose(expectation, actual, distances),
            "message": "" if is_correct else _worst(reports, actual, expectation.reference),
        }
        return answer, (bounds, group_bounds)

    def _told(self, expectation, actual):
        """Compared that accepts whatever becomes of NaN and infinities."""
        names = [output["name"] for output in self._specifications]
        return {
            "isCorrect": True,
            "errors": [],
            "satisfied": list(PRECISIONS),
            "kernelbenchAllclose": True,
            "message": "",
            "remark": remark(names, actual, expectation.outputs()),
        }

    def forget(self):
        """Frees the outputs of the last comparison, which then cannot be repeated."""
        self._last = self._last_outputs = None

    def _is_kernelbench_allclose(self, expectation, actual, distances):
        if not expectation.key.is_unchanged:
            return True
        judged = expectation.outputs()
        return all(
            is_allclose(
                actual[index],
                eager,
                kernelbench_tolerance(eager.dtype),
                distances[index] if eager is judged[index] else None,
            )
            for index, eager in enumerate(expectation.eager()[: self._user_outputs])
        )

    def _compare_repeat(self, expectation, limits, actual, answer):
        """Whether two runs on the same inputs, each of them within the class's bound, agree
        within it as well. `limits` are those by which this one was judged, which may be less
        than all that is known of the class."""
        if self._last is None or self._last.expectation is not expectation:
            return
        pairs = list(zip(actual, self._last_outputs))
        distances, groups = errors(pairs), measured(pairs, float_spreads(self._last_outputs))
        for index, (distance, each) in enumerate(zip(distances, groups)):
            # Of whole numbers each run is right or is not: either of two equals may be picked.
            if not actual[index].is_floating_point():
                continue
            t = distance.tolerance
            name = self._specifications[index]["name"]
            if (
                t > limits[0].allowed(self._precision, index, t)
                and t > expectation.bounds.allowed(self._precision, index, t)
            ):
                answer["isUnrepeatable"] = True
                answer["message"] = (
                    f"output {name} differs by a tolerance of {t:.3g} at element "
                    f"{distance.worst_index} between two runs"
                )
                return
            verdict = limits[1].repeats(self._precision, index, each)
            if verdict.excess > 1.0:
                verdict = expectation.group_bounds.repeats(self._precision, index, each)
            if verdict.excess > 1.0:
                answer["isUnrepeatable"] = True
                answer["message"] = (
                    f"output {name} differs by {verdict.needed:.3g}{_of_what(verdict.part)} in "
                    f"{verdict.part} between two runs, allowed is {verdict.allowed:.3g}"
                )
                return

    def _remember(self, entry, actual):
        """Keeps copies of the outputs for a comparison that repeats this one."""
        self._last = None
        if entry.key.salt or not entry.key.is_unchanged:
            return
        if self._last_outputs is None:
            if not self._may_keep(sum(output.nbytes for output in actual)):
                return
            self._last_outputs = [torch.empty_like(output) for output in actual]
        for copy, output in zip(self._last_outputs, actual):
            copy.copy_(output)
        self._last = entry


def _classes_of_groups(group_bounds, groups, precision):
    """Classes that allow every group its error; each has all that the one before it has. For
    those before `precision` no run is made."""
    for number, name in enumerate(PRECISIONS):
        may_run = number >= PRECISIONS.index(precision)
        if all(
            group_bounds.holds(name, index, each, may_run) for index, each in enumerate(groups)
        ):
            return PRECISIONS[number:]
    return ()


def _whole_number_classes(expectation, actual, needed):
    """Classes that admit them, by index of the whole-number outputs that differ."""
    return {
        index: expectation.whole_numbers.classes(index, y)
        for index, y in enumerate(actual)
        if needed[index] and not y.is_floating_point()
    }


def _require_form(actual, output):
    """Raises ValueError unless the tensor has the output's type; strides do not matter."""
    if actual is None:
        raise ValueError(f"output {output['name']} is missing")
    want = output["type"]
    have = {"dataType": data_type(actual.dtype), "shape": list(actual.shape)}
    if (have["dataType"], have["shape"]) != (want["dataType"], want["shape"]):
        raise ValueError(f"output {output['name']} is {have}, not {want}")


def _report(output, distance, needed, allowed, verdict):
    """mtmc.v1 OutputError, whose part is what decides."""
    report = {
        "output": output["name"],
        "toleranceNeeded": needed,
        "toleranceAllowed": allowed,
        "maxAbsoluteError": distance.max_absolute,
        "worstIndex": distance.worst_index,
        "part": "element",
    }
    if verdict.excess > _excess(report):
        report["part"] = verdict.part
        report["ratioNeeded"], report["ratioAllowed"] = verdict.needed, verdict.allowed
    return report


def _excess(report):
    """How many times its bound the part of a report is."""
    kind = "ratio" if "ratioNeeded" in report else "tolerance"
    return report[f"{kind}Needed"] / max(report[f"{kind}Allowed"], 1e-300)


def _of_what(part):
    return "" if part.endswith(ZERO) else " of its root mean square"


def _worst(reports, actual, reference):
    index = max(range(len(reports)), key=lambda index: _excess(reports[index]))
    entry = reports[index]
    at = entry["worstIndex"]
    found = (
        f"output {entry['output']} is {_value(actual[index], at)} at element {at}, "
        f"the reference's {_value(reference[index], at)}"
    )
    if "ratioNeeded" in entry:
        return (
            f"{found}; its error is {entry['ratioNeeded']:.3g}"
            f"{_of_what(entry['part'])} in {entry['part']}, allowed is {entry['ratioAllowed']:.3g}"
        )
    if not actual[index].is_floating_point():
        return found
    return (
        f"{found}; that needs a tolerance of {entry['toleranceNeeded']:.3g}, "
        f"allowed is {entry['toleranceAllowed']:.3g}"
    )


def _value(tensor, index):
    """The element at a row-major index, for people; nothing is copied."""
    coordinates = []
    for size in reversed(tensor.shape):
        index, coordinate = divmod(index, size)
        coordinates.insert(0, coordinate)
    value = tensor[tuple(coordinates)].item()
    return f"{value:.7g}" if isinstance(value, float) else str(value)
