# SPDX-License-Identifier: Apache-2.0
"""`python -m mtmc_reference.selftest --device cuda:0`: the whole path on small problems.

The test loads each problem, opens the shared inputs in a child process, lets the
child compute and share the outputs of every distribution, compares them, and times
every baseline. Then it asks for all workloads again and says what a candidate costs
the reference process once everything is remembered. It prints a PASS line per step
and exits with 1 at the first that fails.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

from .distribution import DISTRIBUTIONS

_PROBLEMS = {
    "linear": (
        """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 32)

    def forward(self, x):
        return torch.relu(self.fc(x))

def get_inputs():
    return [torch.rand(128, 64)]

def get_init_inputs():
    return []
""",
        "{'y': torch.relu(t['x'].double() @ t['fc_weight'].double().T + t['fc_bias']).float()}",
    ),
    "norm": (
        """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x):
        return self.norm(x)

def get_inputs():
    return [torch.rand(4, 8, 16, 16)]

def get_init_inputs():
    return []
""",
        "batch_norm(t)",
    ),
    "wide": (
        """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x, z):
        return torch.tanh(x) * z

def get_inputs():
    return [torch.rand(WIDTH, 4096), torch.rand(WIDTH, 4096)]

def get_init_inputs():
    return []
""",
        "{'y': torch.tanh(t['x']) * t['z']}",
    ),
}
# Rows of the problem `wide`: 100 MB of inputs and outputs on a GPU.
_WIDTHS = {"cpu": 64, "cuda": 2048}

_WORKLOADS = [
    *({"workload": seed} for seed in (1, 2)),
    *({"workload": 101 + i, "distribution": name} for i, name in enumerate(DISTRIBUTIONS)),
    {"workload": 0},
]


def batch_norm(t):
    """Training-mode batch norm and its new statistics, from the definition."""
    x = t["x"].double()
    mean = x.mean(dim=(0, 2, 3))
    variance = x.var(dim=(0, 2, 3), unbiased=False)
    count = x.numel() / x.shape[1]
    y = (x - mean.view(1, -1, 1, 1)) / (variance.view(1, -1, 1, 1) + 1e-5).sqrt()
    y = y * t["norm_weight"].view(1, -1, 1, 1) + t["norm_bias"].view(1, -1, 1, 1)
    unbiased = variance * count / (count - 1)
    return {
        "y": y.float(),
        "norm_running_mean_new": (0.9 * t["norm_running_mean"] + 0.1 * mean).float(),
        "norm_running_var_new": (0.9 * t["norm_running_var"] + 0.1 * unbiased).float(),
        "norm_num_batches_tracked_new": t["norm_num_batches_tracked"] + 1,
    }


def run_child(device_name, scratch):
    """Plays the runner: inputs in by line, outputs out by line, until the stream ends."""
    import torch

    from . import share

    device = torch.device(device_name)
    publication = None
    for line in sys.stdin:
        request = json.loads(line)
        if publication:
            publication.release()
        with share.opened(request["inputs"], device) as t:
            scope = {"torch": torch, "t": t, "batch_norm": batch_norm}
            outputs = eval(request["formula"], scope)
        publication = share.publish(list(outputs.items()), scratch, device)
        print(json.dumps(publication.messages), flush=True)
    if publication:
        publication.release()


class _Child:
    def __init__(self, arguments):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ask(self, request):
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def stop(self):
        self._process.stdin.close()
        return self._process.wait(timeout=60)


def _step(name, is_right, detail=""):
    if is_right and name == "prepare":
        return
    print("PASS" if is_right else "FAIL", name, detail, flush=True)
    if not is_right:
        sys.exit(1)


def _round_trip(reference, runner, request, formula):
    """(Compared, outputs, seconds that the reference process took); no outputs where the
    workload is dropped."""
    start = time.perf_counter()
    answer = reference.ask({"prepare": request})
    seconds = time.perf_counter() - start
    prepared = answer.get("prepared", {})
    if "dropped" in prepared:
        return {"isCorrect": True, "kernelbenchAllclose": True}, None, seconds
    _step("prepare", "inputs" in prepared, answer.get("failure", request))
    outputs = runner.ask({"inputs": prepared["inputs"], "formula": formula})
    start = time.perf_counter()
    compare = {"outputs": outputs, "prepared": prepared["prepared"]}
    answer = reference.ask({"compare": compare}).get("compared", {})
    return answer, outputs, seconds + time.perf_counter() - start


def _run(device, scratch, include_compile):
    reference = _Child(["mtmc_reference", "--scratch", scratch])
    arguments = ["--child", "--device", device, "--scratch", scratch]
    runner = _Child(["mtmc_reference.selftest", *arguments])
    baselines = ["BASELINE_EAGER", "BASELINE_EAGER_TF32", "BASELINE_EAGER_AUTOCAST"]
    if include_compile:
        baselines += ["BASELINE_COMPILE", "BASELINE_COMPILE_MAX_AUTOTUNE"]
    for name, (source, formula) in _PROBLEMS.items():
        path = os.path.join(scratch, f"{name}.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(source.replace("WIDTH", str(_WIDTHS[device.split(":")[0]])))
        start = time.monotonic()
        answer = reference.ask({"load": {"path": path, "device": device}})
        detail = f"{time.monotonic() - start:.2f} s"
        _step(f"{name}: load", "loaded" in answer, detail if "loaded" in answer else answer)
        for request in _WORKLOADS:
            what = " ".join(str(value) for value in request.values())
            answer, outputs, seconds = _round_trip(reference, runner, request, formula)
            is_right = answer.get("isCorrect") and answer.get("kernelbenchAllclose")
            errors = [f"{e['output']} {e['toleranceNeeded']:.2g}" for e in answer.get("errors", [])]
            _step(f"{name}: {what}", is_right, f"{seconds * 1e3:.2f} ms {errors or answer}")
        again = [_round_trip(reference, runner, request, formula) for request in _WORKLOADS]
        total = sum(seconds for *_, seconds in again)
        is_right = all(answer.get("isCorrect") for answer, *_ in again)
        _step(f"{name}: all workloads again", is_right, f"{total * 1e3:.2f} ms")
        answer, *_ = _round_trip(reference, runner, {"workload": 0}, formula)
        answer = reference.ask({"compare": {"outputs": outputs, "isRepeat": True}})["compared"]
        _step(f"{name}: repeat", not answer.get("isUnrepeatable"))
        request = {"workload": 9, "salt": "77"}
        answer, *_, seconds = _round_trip(reference, runner, request, formula)
        _step(f"{name}: fresh", answer.get("isCorrect"), f"{seconds * 1e3:.2f} ms")
        inputs = reference.ask({"prepare": {"workload": 0}})["prepared"]["inputs"]
        zeros = f"{{name: value * 0 for name, value in {formula}.items()}}"
        wrong = runner.ask({"inputs": inputs, "formula": zeros})
        answer = reference.ask({"compare": {"outputs": wrong}}).get("compared", {})
        _step(f"{name}: refuse zeros", answer.get("isCorrect") is False, answer.get("message"))
        for baseline in baselines:
            request = {"baseline": baseline, "samples": 5, "isCold": True, "warmups": 2}
            answer = reference.ask({"timeBaseline": request})
            times = answer.get("timed", {}).get("samplesSeconds", [])
            detail = [f"{seconds * 1e6:.1f} us" for seconds in times] or answer
            _step(f"{name}: {baseline}", len(times) == 5, detail)
    _step("runner ends", runner.stop() == 0)
    _step("reference ends", reference.stop() == 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--scratch", help="folder for shared files; a temporary one by default")
    parser.add_argument("--compile", action="store_true", help="time torch.compile too")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_child(options.device, options.scratch)
        return
    with tempfile.TemporaryDirectory() as scratch:
        _run(options.device, options.scratch or scratch, options.compile)


if __name__ == "__main__":
    main()
