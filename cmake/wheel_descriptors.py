# SPDX-License-Identifier: Apache-2.0
"""wheel_descriptors.py OUT MODULE...: writes the descriptors of protos that a wheel
holds as generated Python modules, with all that they import, for
`protoc --descriptor_set_in`."""

import importlib
import pathlib
import sys

from google.protobuf import descriptor_pb2


def add(file, found):
    """Adds `file` after what it imports, as protoc wants them."""
    if file.name in found:
        return
    for imported in file.dependencies:
        add(imported, found)
    found[file.name] = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(found[file.name])


def main(out, *modules):
    found = {}
    for module in modules:
        add(importlib.import_module(module).DESCRIPTOR, found)
    files = descriptor_pb2.FileDescriptorSet(file=found.values())
    pathlib.Path(out).write_bytes(files.SerializeToString(deterministic=True))


if __name__ == '__main__':
    main(*sys.argv[1:])
