# SPDX-License-Identifier: Apache-2.0
"""What the schema of an ATen operator says of a call."""


def arguments_by_name(func, args, kwargs=None):
    """The arguments that a call gives; those that it leaves out are missing."""
    names = (argument.name for argument in func._schema.arguments)
    return {**dict(zip(names, args)), **(kwargs or {})}
