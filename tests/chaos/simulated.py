# SPDX-License-Identifier: Apache-2.0
"""Simulated workers: they speak the whole lease protocol, run nothing, and mark each
evaluation, so that it is known again in the store."""

import random
import subprocess
import threading
import time
import uuid

import contract
import history as histories
import stack as stacks
import world as worlds
from google.protobuf import text_format

PRODUCT = "simulated-cpu"
CALL_SECONDS = 12
MEAN_WORK_SECONDS = 0.3
EAGER_SECONDS = 1e-3
C = stacks.CONTRACT
# Numbers of Stage, Precision, Isolation and Baseline.
MEASURE, KERNELBENCH, CONFINED, EAGER = 4, 2, 3, 1
VERSION = subprocess.check_output([stacks.BIN / "mtmc-worker", "--version"], text=True).split()[-1]

DEVICE = f"""
product: "{PRODUCT}" dialects: DIALECT_OPENCL compute_units: 8 memory_bytes: 17179869184 cache_bytes: 33554432
shared_memory_per_block_bytes: 65536 max_threads_per_block: 4096 warp_size: 1 vector_bytes: 32
memory_bandwidth_bytes_per_second: 2e10 fp32_flops_per_second: 2e11 driver_version: "1" toolchain_version: "1"
"""

_TYPE = "{ data_type: DATA_TYPE_F32 shape: [64, 32] }"


def _node(name, op, names, values):
    arguments = " ".join(f'arguments {{ value: "{value}" }}' for value in values)
    listed = " ".join(f'argument_names: "{one}"' for one in names)
    return f'nodes {{ name: "{name}" op: "{op}" line: 1 {arguments} {listed} results: "{name}" result_types {_TYPE} }}'


INSPECTION = f"""
graph {{
  inputs {{ name: "x" kind: KIND_USER_INPUT type {_TYPE} }}
  {_node("tanh", "aten::tanh.default", ["self"], ["x"])}
  {_node("mul", "aten::mul.Tensor", ["self", "other"], ["tanh", "x"])}
  {_node("sigmoid", "aten::sigmoid.default", ["self"], ["mul"])}
  outputs {{ name: "y" kind: KIND_USER_OUTPUT value: "sigmoid" type {_TYPE} }}
  source: "return torch.sigmoid(torch.tanh(x) * x)" digest: "chaos"
}}
baselines {{ baseline: BASELINE_EAGER median_seconds: {EAGER_SECONDS} samples: 20 }}
minimum_bytes: 64
"""


def _measurement(seconds):
    return C.Measurement(median_seconds=seconds, noise_ratio=0.01, error_ratio=0.003, is_cold=True,
                         stopped_by="noise", samples_seconds=[seconds] * 5)  # fmt: skip


def evaluate(lease, tag, work_us):
    """An invented evaluation that has `tag` in it and took so long."""
    quality = int(lease.evaluation.program.sha256[:2] or "0", 16)
    evaluation = C.Evaluation()
    evaluation.profile.summary = tag
    span = evaluation.spans.add(stage=MEASURE)
    now = time.time_ns() // 1000
    span.start_time.FromMicroseconds(now - work_us)
    span.end_time.FromMicroseconds(now)
    if quality % 8 == 0:
        evaluation.verdict = C.Evaluation.Verdict.Value("VERDICT_WRONG")
        evaluation.failure.kind = C.Failure.Kind.Value("KIND_WRONG_RESULT")
        evaluation.failure.message = "invented; nothing was run"
        return evaluation
    speedup = 0.5 + quality / 128
    evaluation.verdict = C.Evaluation.Verdict.Value("VERDICT_CORRECT")
    evaluation.satisfied.append(KERNELBENCH)
    evaluation.measurement.CopyFrom(_measurement(EAGER_SECONDS / speedup))
    outcome = "OUTCOME_FASTER" if speedup > 1 else "OUTCOME_SLOWER"
    evaluation.comparisons.add(
        baseline=EAGER, outcome=C.Comparison.Outcome.Value(outcome), speedup=speedup, speedup_low=0.98 * speedup,
        speedup_high=1.02 * speedup, baseline_measurement=_measurement(EAGER_SECONDS),
    )  # fmt: skip
    return evaluation


class Worker:
    """One thread. `kill` makes it forget all, as SIGKILL would; `stall` makes it silent."""

    def __init__(self, world, history, number, seed):
        self._history = history
        self._number = number
        self._random = random.Random(f"{seed}/worker/{number}")
        self._clients = worlds.Clients(world, f"{seed}/worker/{number}/calls")
        self._is_over = threading.Event()
        self._stall = 0
        self._executions = 0
        self._reset()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def kill(self):
        self._is_killed = True

    def stall(self, seconds):
        self._stall = seconds

    def end(self):
        self._is_over.set()

    def join(self):
        self._thread.join(CALL_SECONDS + 5)
        self._clients.close()

    def _reset(self):
        self._instance = str(uuid.uuid4())
        self._lease = C.Lease()
        self._result = self._kept = None
        self._has_said = False
        self._is_killed = False

    def _request(self):
        request = C.SynchronizeRequest(instance_id=self._instance)
        request.worker.name = f"workers/sim-{self._number}"
        request.worker.version = VERSION
        request.worker.host = "chaos"
        request.worker.isolation_level = CONFINED
        text_format.Parse(DEVICE, request.worker.device)
        request.worker.device.uuid = f"sim-{self._number}"
        if not self._lease.id:
            request.idle.SetInParent()
        elif time.monotonic() < self._done:
            request.executing.lease_id = self._lease.id
            request.executing.stage = MEASURE
        else:
            self._finish()
            request.completed.lease_id = self._lease.id
            request.completed.result.CopyFrom(self._result)
        return request

    def _finish(self):
        if self._result is not None:
            return
        self._result = C.LeaseResult()
        if not self._lease.HasField("evaluation"):
            text_format.Parse(INSPECTION, self._result.inspection)
            return
        # Of this execution: the same lease may be told once more by a new coordinator.
        self._executions += 1
        tag = f"chaos {self._number}.{self._executions} {self._lease.id}"
        self._result.evaluation.CopyFrom(evaluate(self._lease, tag, self._work_us))
        self._kept = histories.Result(self._lease.job, self._lease.candidate, tag, self._work_us, time.monotonic())
        self._history.add("results", self._kept)

    def _run(self):
        while not self._is_over.is_set():
            if self._stall:
                self._is_over.wait(self._stall)
                self._stall = 0
            if self._is_killed:
                self._reset()
            request = self._request()
            called = time.monotonic()
            try:
                answer = self._clients.one.call("LeaseService", "Synchronize", seconds=CALL_SECONDS,
                                                **{f.name: v for f, v in request.ListFields()})  # fmt: skip
            except contract.CallError as error:
                self._history.is_surprise(error, f"Synchronize of sim-{self._number}")
                self._clients.move()
                self._is_over.wait(0.2)
                continue
            if not self._is_killed:
                self._take(request, answer, called)

    def _take(self, request, answer, called):
        if request.HasField("completed"):
            # Any answer acknowledges a result.
            if self._kept is not None and self._kept.acknowledged is None:
                self._kept.acknowledged = time.monotonic()
            self._lease, self._result, self._kept = C.Lease(), None, None
        if answer.lease.id != self._lease.id:
            self._lease, self._result, self._kept = answer.lease, None, None
            self._has_said = False
            if self._lease.id:
                self._history.add("grants", histories.Grant(
                    self._lease.id, self._lease.candidate, f"sim-{self._number}", called))  # fmt: skip
                work = self._random.uniform(0, 2) * MEAN_WORK_SECONDS
                self._work_us = max(1, int(work * 1e6))
                self._done = time.monotonic() + work
        elif self._lease.id and request.HasField("executing"):
            self._is_over.wait(min(0.5, max(0, self._done - time.monotonic())))
