# SPDX-License-Identifier: Apache-2.0
"""What stays loaded between requests, and one method per request.

Requests and answers are the messages of `mtmc/pipe/v1/reference.proto` as
dictionaries. One problem is loaded at a time, with any number of prepared
workloads. A problem at fault raises ProblemFailure.
"""

import gc

import torch._dynamo  # Slow to import: better before the first request than in it.

from . import distribution, workload
from .failure import ProblemFailure
from .loaded_problem import LoadedProblem
from .peril import is_context_lost


class Session:
    """The loaded problem. Not thread-safe."""

    def __init__(self, scratch):
        self._scratch = scratch
        self._loaded = None

    def is_lost(self):
        """Whether the context of the device is lost."""
        return is_context_lost()

    def close(self):
        """Drops the problem and everything it shares."""
        if self._loaded is not None:
            self._loaded.release()
            self._loaded = None
        # Models are full of cycles, and a failed load leaves its tensors too.
        gc.collect()
        workload.return_cached_memory()

    def load(self, request):
        """ReferenceRequest.Load to ReferenceResponse.Loaded."""
        self.close()
        loaded = LoadedProblem(self._scratch, request)
        inspection = loaded.inspect()
        self._loaded = loaded
        workload.return_cached_memory()
        return {"inspection": inspection}

    def prepare(self, request):
        """ReferenceRequest.Prepare to ReferenceResponse.Prepared."""
        return self._require_loaded().prepare(
            int(request.get("workload", 0)),
            request.get("distribution", distribution.NONE),
            int(request.get("salt", 0)),
            bool(request.get("keepsLast", False)),
            request.get("numbers", ()),
        )

    def compare(self, request):
        """ReferenceRequest.Compare to ReferenceResponse.Compared."""
        loaded, handle = self._require_loaded(), int(request.get("prepared", 0))
        answer = loaded.compare(
            request.get("outputs", []), handle, bool(request.get("isRepeat", False))
        )
        if request.get("forgets", False):
            loaded.forget(handle)
        return answer

    def release(self, request):
        """ReferenceRequest.Release; answers an empty Compared, as there is nothing to tell."""
        if request.get("allOthers", False):
            self._require_loaded().make_room()
        else:
            self._require_loaded().forget(int(request.get("prepared", 0)))
        return {}

    def time_baseline(self, request):
        """ReferenceRequest.TimeBaseline to ReferenceResponse.Timed."""
        times = self._require_loaded().time_baseline(
            request.get("baseline", "BASELINE_EAGER"),
            samples=int(request.get("samples", 1)),
            is_cold=bool(request.get("isCold", False)),
            warmups=int(request.get("warmups", 0)),
            with_yardstick=bool(request.get("withYardstick", False)),
        )
        return {
            "samplesSeconds": times.seconds,
            "yardstickSeconds": times.yardstick_seconds,
            "launches": times.launches,
            "clockHertz": times.clock_hertz,
        }

    def _require_loaded(self):
        if self._loaded is None:
            raise ProblemFailure("NOT_LOADED", "no problem is loaded; send Load first")
        return self._loaded
