# SPDX-License-Identifier: Apache-2.0
"""The command line of a module that draws models and programs."""

import argparse
import warnings

import torch


def options(doc, count, *flags):
    """`seed`, `count` and `flags` of a generator that is run by itself, in one thread and without
    warnings from here on."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--seed", default="1")
    parser.add_argument("--count", type=int, default=count)
    for flag in flags:
        parser.add_argument(flag, action="store_true")
    found = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    return found
