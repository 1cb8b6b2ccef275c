# SPDX-License-Identifier: Apache-2.0
"""Programs in both dialects from one text, and their evaluation in one run of
`mtmc-evaluate`, exactly as a worker does it. Needs nothing but Python and the
programs of a build or a bundle.
"""

import dataclasses
import json
import pathlib
import re
import subprocess
import sys
import tempfile

# What the words of a `.kernel` text become.
_WORDS = {
    "opencl": {
        "DIALECT": "opencl",
        "KERNEL": "__kernel",
        "GLOBAL": "__global",
        "LOCAL": "__local",
        "CONSTANT": "__constant",
        "DEVICE": "",
        "BARRIER": "barrier(CLK_LOCAL_MEM_FENCE)",
        "GLOBAL_ID": "((int)get_global_id(0))",
        "LOCAL_ID": "((int)get_local_id(0))",
        "GROUP_ID": "((int)get_group_id(0))",
        "LONG": "long",
        "BITS": "as_int",
        "FLOAT": "as_float",
        "TRAP": "__builtin_trap()",
    },
    "cuda": {
        "DIALECT": "cuda",
        "KERNEL": 'extern "C" __global__',
        "GLOBAL": "",
        "LOCAL": "__shared__",
        "CONSTANT": "__constant__",
        "DEVICE": "__device__",
        "BARRIER": "__syncthreads()",
        "GLOBAL_ID": "((int)(blockIdx.x * blockDim.x + threadIdx.x))",
        "LOCAL_ID": "((int)threadIdx.x)",
        "GROUP_ID": "((int)blockIdx.x)",
        "LONG": "long long",
        "BITS": "__float_as_int",
        "FLOAT": "__int_as_float",
        "TRAP": "__trap()",
    },
}

_WORD = re.compile(r"\b[A-Z][A-Z_]+\b")

# Few samples: whether a time is believed at all does not depend on its precision.
FAST = {
    "min_samples": 5,
    "max_noise_ratio": 0.5,
    "hidden_seeds": 1,
    "omit_profile": True,
    "omit_confirmation": True,
}


def translate(path, dialect, replace):
    """The text of a program: `.kernel` words replaced, then those of `replace`."""
    text = pathlib.Path(path).read_text()
    for word, value in replace.items():
        text = re.sub(rf"\b{word}\b", lambda _, value=value: value, text)
    if str(path).endswith(".kernel"):
        words = _WORDS[dialect]
        text = _WORD.sub(lambda match: words.get(match[0], match[0]), text)
    return text


@dataclasses.dataclass(frozen=True)
class Case:
    """One program to evaluate."""

    name: str
    problem: pathlib.Path
    text: str
    dialect: str
    options: dict = dataclasses.field(default_factory=dict)
    allowed_calls: tuple = ()
    precision: str = "kernelbench"
    randomize: bool = False


def dialect_of(device):
    """Dialect of the programs that run on `device`, such as `cuda:0`."""
    return "cuda" if device.startswith("cuda") else "opencl"


def evaluate(bin_folder, device, cases, timeout):
    """Result of each case by its name: `mtmc.v1.LeaseResult` as a dictionary.

    Cases of one problem should stand together: loading it takes longer than
    judging a program. A case that got no result is missing.
    """
    with tempfile.TemporaryDirectory(prefix="mtmc-cases-") as folder:
        folder = pathlib.Path(folder)
        manifest, verdicts = folder / "manifest.jsonl", folder / "verdicts.jsonl"
        lines = [json.dumps(_manifest_entry(case, folder, i)) for i, case in enumerate(cases)]
        manifest.write_text("\n".join(lines) + "\n")
        command = [pathlib.Path(bin_folder) / "mtmc-evaluate", "--manifest", manifest]
        command += ["--json", verdicts, "--device", device]
        error = _run(command, timeout, folder / "log.txt")
        if not verdicts.exists():
            raise RuntimeError(f"mtmc-evaluate {error}")
        if error:
            print(f"mtmc-evaluate {error}", file=sys.stderr)
        results = [json.loads(line) for line in verdicts.read_text().splitlines()]
    return {result["name"]: result for result in results}


def _run(command, timeout, log_path):
    """Why `command` did not end well; empty when it did."""
    with open(log_path, "w", encoding="utf-8") as log:
        with subprocess.Popen(command, stdout=log, stderr=log) as process:
            try:
                code = process.wait(timeout)
                ending = f"ended with {code}" if code else ""
            except subprocess.TimeoutExpired:
                # It ends its own children on a polite signal.
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                ending = f"did not end within {timeout} s"
    return f"{ending}: {log_path.read_text()[-2000:]}" if ending else ""


def _manifest_entry(case, folder, number):
    program = folder / f"{number}.txt"
    program.write_text(case.text)
    return {
        "name": case.name,
        "problem": str(case.problem),
        "program": str(program),
        "precision": case.precision,
        "options": case.options,
        "allowed_calls": list(case.allowed_calls),
        "randomize_identity_parameters": case.randomize,
    }


def is_accepted(result):
    """Whether the program was found correct and has a time."""
    evaluation = result.get("evaluation", {})
    return "measurement" in evaluation and "failure" not in evaluation


def describe(result):
    """One line on what came out."""
    if result is None:
        return "no result"
    for field in ("problem_failure", "worker_failure"):
        if field in result:
            return f"{field} {result[field].get('reason')}: {result[field].get('message')}"
    evaluation = result.get("evaluation", {})
    failure = evaluation.get("failure")
    if failure:
        first = failure.get("diagnostics", "").strip().splitlines()[:1]
        return " | ".join([failure.get("kind", "?"), failure.get("message", ""), *first])[:400]
    return f"accepted, {evaluation.get('measurement', {}).get('median_seconds')} s"


def failure_kind(result):
    """`CHECK`, `WRONG_RESULT`, ...; empty when the program was accepted."""
    kind = (result or {}).get("evaluation", {}).get("failure", {}).get("kind", "")
    return kind.removeprefix("KIND_")


def median_seconds(result):
    """What is reported as the time of an accepted program."""
    return result["evaluation"]["measurement"]["median_seconds"]


def shortest_seconds(result):
    """Shortest sample of an accepted program: the one that a busy host disturbed least."""
    return min(result["evaluation"]["measurement"]["samples_seconds"])
