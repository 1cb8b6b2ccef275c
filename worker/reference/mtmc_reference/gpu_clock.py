# SPDX-License-Identifier: Apache-2.0
"""Reads the clock of one GPU's multiprocessors through the driver's NVML."""

import ctypes

_SUCCESS = 0
# NVML_CLOCK_SM of nvml.h.
_SM_CLOCK = 1


class GpuClock:
    """The clock of one CUDA device; reads 0 where NVML or the device is not there."""

    def __init__(self, device):
        self._nvml = None
        self._handle = ctypes.c_void_p()
        try:
            import torch

            uuid = torch.cuda.get_device_properties(device).uuid
            nvml = ctypes.CDLL("libnvidia-ml.so.1")
            if nvml.nvmlInit_v2() == _SUCCESS and self._find(nvml, f"GPU-{uuid}"):
                self._nvml = nvml
        except (OSError, AttributeError, RuntimeError):
            pass

    def _find(self, nvml, uuid):
        handle = ctypes.byref(self._handle)
        return nvml.nvmlDeviceGetHandleByUUID(uuid.encode("ascii"), handle) == _SUCCESS

    def hertz(self):
        """The clock now."""
        if self._nvml is None:
            return 0.0
        megahertz = ctypes.c_uint()
        answer = self._nvml.nvmlDeviceGetClockInfo(
            self._handle, _SM_CLOCK, ctypes.byref(megahertz)
        )
        return 1e6 * megahertz.value if answer == _SUCCESS else 0.0
