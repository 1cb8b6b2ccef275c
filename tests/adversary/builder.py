# SPDX-License-Identifier: Apache-2.0
"""Builds programs for a GPU that need not be there, with the worker's own builder.

It gets the headers that every host with PyTorch has beside those of the build or bundle.
"""

import importlib.util
import pathlib
import socket
import struct
import subprocess

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# Descriptor on which the builder talks (worker/builder/child_process.h).
_CHANNEL = 3
_ANSWER_SECONDS = 120


def toolkit():
    """Folder of the CUDA wheels, None where they are not installed."""
    try:
        found = importlib.util.find_spec("nvidia.cu13")
    except ImportError:
        return None
    return pathlib.Path(next(iter(found.submodule_search_locations))) if found else None


def _headers():
    triton = importlib.util.find_spec("triton")
    places = [pathlib.Path(folder) for folder in triton.submodule_search_locations] if triton else []
    return [toolkit() / "include", *(place / "backends/nvidia/include" for place in places)]


class Builder:
    """`mtmc-builder` of a build or a bundle. A context manager."""

    def __init__(self, bin_folder, compute_capability):
        self._compute_capability = compute_capability
        folder = pathlib.Path(bin_folder).resolve()
        self._messages = _messages(folder.parent / "share/mtmc/mtmc.binpb")
        flags = ["--nvrtc", next((toolkit() / "lib").glob("libnvrtc.so.*"))]
        flags += ["--cuda-include-dir", ":".join(str(path) for path in _headers())]
        self._channel, theirs = socket.socketpair()
        self._channel.settimeout(_ANSWER_SECONDS)
        # The shell gives the descriptor its number.
        shell = ["sh", "-c", f'exec "$@" {_CHANNEL}<&0 0</dev/null', "sh"]
        with theirs:
            self._process = subprocess.Popen(
                [*shell, folder / "mtmc-builder", *flags], stdin=theirs
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._channel.close()
        self._process.kill()
        self._process.wait()

    def failure(self, text):
        """(kind, one line) of why the program `text` cannot be built; None if it can."""
        request = self._messages["mtmc.pipe.v1.BuilderRequest"]()
        request.build.program = text
        request.build.device.compute_capability = self._compute_capability
        message = request.SerializeToString()
        self._channel.sendall(struct.pack("<I", len(message)) + message)
        (length,) = struct.unpack("<I", self._receive(4))
        response = self._messages["mtmc.pipe.v1.BuilderResponse"]()
        response.ParseFromString(self._receive(length))
        built = response.built[0]
        if not built.HasField("failure"):
            return None
        first = built.failure.diagnostics.strip().splitlines()[:1]
        kind = built.failure.DESCRIPTOR.fields_by_name["kind"].enum_type.values_by_number
        name = kind[built.failure.kind].name.removeprefix("KIND_")
        return name, " | ".join([built.failure.message, *first])

    def _receive(self, size):
        parts = bytearray()
        while len(parts) < size:
            part = self._channel.recv(size - len(parts))
            if not part:
                raise RuntimeError("mtmc-builder has ended")
            parts += part
        return bytes(parts)


def _messages(descriptors):
    """Classes of all messages by their full names."""
    files = descriptor_pb2.FileDescriptorSet.FromString(descriptors.read_bytes())
    return message_factory.GetMessages(files.file, pool=descriptor_pool.DescriptorPool())
