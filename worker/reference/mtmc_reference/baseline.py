# SPDX-License-Identifier: Apache-2.0
"""Times a baseline: PyTorch eager, with TF32 or half precision, or `torch.compile`.

Each sample is one forward pass without gradients, between two CUDA events or
two readings of the host clock. A cold sample runs after a buffer larger than the
last cache has been rewritten, outside the timed part. On CUDA the host launches
while that is under way, as for a candidate and as KernelBench does, so that the
time of a launch counts only where it is longer. A sample in which the device began
before the host was done is taken again, with more flushes if need be.
"""

import dataclasses
import time

import torch

from . import yardstick
from .allocator_calls import settled
from .failure import ProblemFailure, summary
from .gpu_clock import GpuClock
from .host_lead import HostLead
from .launch_counter import LaunchCounter
from .places import Places
from .precision import Arithmetic, arithmetic

_ARITHMETIC = {
    "BASELINE_EAGER": Arithmetic.DEFAULT,
    "BASELINE_EAGER_TF32": Arithmetic.TF32,
    "BASELINE_COMPILE": Arithmetic.DEFAULT,
    "BASELINE_COMPILE_MAX_AUTOTUNE": Arithmetic.DEFAULT,
    "BASELINE_EAGER_AUTOCAST": Arithmetic.BF16,
}
# Mode of `torch.compile`; other baselines run the model as it is.
_COMPILE_MODES = {
    "BASELINE_COMPILE": "default",
    "BASELINE_COMPILE_MAX_AUTOTUNE": "max-autotune",
}
# Multiples of the last-level cache that a flush rewrites. On a CPU the cache is
# not exclusive and has no strict LRU order, so one size is not enough.
_CUDA_CACHES = 2
_CPU_CACHES = 4
_MIN_CUDA_FLUSH = 256 * 1024 * 1024
# Cache size where the kernel does not tell, and the largest that is believed:
# a virtual machine may show the cache of the whole host.
_DEFAULT_CPU_CACHE = 32 * 1024 * 1024
_MAX_CPU_CACHE = 64 * 1024 * 1024


@dataclasses.dataclass
class Times:
    """What one block of executions took."""

    # Of each sample.
    seconds: list
    # Of the yardstick after each sample; empty where it was not asked for, or there is none.
    yardstick_seconds: list
    # Kernels that one sample launches, as far as it is known.
    launches: int = 1
    # Of the device; 0 if unknown.
    clock_hertz: float = 0.0


class Baselines:
    """Times the model of one execution. Compiled code is kept until it is dropped."""

    def __init__(self, execution, device):
        self._execution = execution
        self._device = device
        # Compiled models by mode.
        self._compiled = {}
        # Launches of a forward pass by baseline.
        self._launches = {}
        self._places = Places(device)
        self._flush_buffer = None
        self._lead = HostLead()
        self._clock = GpuClock(device) if device.type == "cuda" else None

    def sample(self, baseline, inputs, samples, is_cold, warmups, with_yardstick=False):
        """Times of `samples` forward passes on `inputs`.

        Raises ProblemFailure BASELINE_FAILED when it cannot be run. Mutated
        buffers have their initial values again afterwards.
        """
        if baseline not in _ARITHMETIC:
            raise ProblemFailure("BASELINE_FAILED", f"{baseline!r} is no baseline; choose one")
        timed = self._timed_cuda if self._device.type == "cuda" else self._timed_cpu
        try:
            model = self._model(baseline)
            kind = _ARITHMETIC[baseline]
            inputs = self._places.of_inputs(inputs)
            with (
                self._execution.preserved_state(),
                arithmetic(kind, self._device),
                torch.no_grad(),
                self._places.moved_outputs(),
            ):
                for _ in range(warmups):
                    self._places.note_outputs(model(*inputs))
                own = yardstick.find(self._device) if with_yardstick else None
                times = Times([], [], self._count_launches(baseline, model, inputs))
                for _ in range(samples):
                    times.seconds.append(timed(lambda: model(*inputs), is_cold))
                    if own is not None:
                        times.yardstick_seconds.append(timed(own.launch, True))
                if self._clock:
                    times.clock_hertz = self._clock.hertz()
                return times
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise ProblemFailure(
                "BASELINE_FAILED",
                f"{baseline} raised {summary(error)}; choose another baseline",
                0,
                error,
            ) from error

    def _model(self, baseline):
        mode = _COMPILE_MODES.get(baseline)
        if mode is None:
            return self._execution.model
        if mode not in self._compiled:
            if not self._compiled:
                torch._dynamo.reset()
            self._compiled[mode] = torch.compile(self._execution.model, mode=mode)
        return self._compiled[mode]

    def _count_launches(self, baseline, model, inputs):
        """What is not compiled launches a kernel for each operator."""
        if self._device.type != "cuda" or baseline in _COMPILE_MODES:
            return 1
        if baseline not in self._launches:
            counter = LaunchCounter()
            try:
                with counter:
                    model(*inputs)
            except Exception:
                # What cannot be looked at while it runs; if it cannot run, its sample tells.
                counter.count = 1
            self._launches[baseline] = max(counter.count, 1)
        return self._launches[baseline]

    def _timed_cpu(self, run, is_cold):
        if is_cold:
            self._flush()
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    def _timed_cuda(self, run, is_cold):
        return settled(lambda: self._timed_once(run, is_cold), self._device)

    def _timed_once(self, run, is_cold):
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        while True:
            torch.cuda.synchronize(self._device)
            if is_cold:
                for _ in range(self._lead.passes):
                    self._flush()
            start.record()
            run()
            end.record()
            is_late = is_cold and self._lead.note(start.query())
            torch.cuda.synchronize(self._device)
            if not is_late:
                return start.elapsed_time(end) / 1e3

    def _flush(self):
        if self._flush_buffer is None:
            size = _flush_bytes(self._device)
            self._flush_buffer = torch.zeros(size, dtype=torch.uint8, device=self._device)
        if self._device.type == "cuda":
            # What the candidate's process does, too: the driver's memset.
            self._flush_buffer.zero_()
        else:
            # Reads and writes every line; a memset may go past the cache.
            self._flush_buffer.bitwise_not_()


def _flush_bytes(device):
    if device.type == "cuda":
        cache = torch.cuda.get_device_properties(device).L2_cache_size
        return max(_MIN_CUDA_FLUSH, _CUDA_CACHES * cache)
    return _CPU_CACHES * min(_cpu_cache_bytes(), _MAX_CPU_CACHE)


def _cpu_cache_bytes():
    try:
        with open("/sys/devices/system/cpu/cpu0/cache/index3/size", encoding="ascii") as file:
            text = file.read().strip()
    except OSError:
        return _DEFAULT_CPU_CACHE
    units = {"K": 1024, "M": 1024**2, "G": 1024**3}
    return int(text[:-1]) * units[text[-1]] if text[-1:] in units else _DEFAULT_CPU_CACHE
