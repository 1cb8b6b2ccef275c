# SPDX-License-Identifier: Apache-2.0
"""`python -m mtmc_reference --scratch DIR`: serves requests on standard input."""

import argparse
import json
import os
import sys
import warnings


# Blocks of PyTorch's allocator above this size are never split: a tensor of gigabytes in
# the corner of a larger block would keep all of it from other processes.
_LARGEST_SPLIT_MB = 256


def main():
    parser = argparse.ArgumentParser(prog="mtmc_reference", description=__doc__)
    parser.add_argument("--scratch", required=True, help="folder for tensors shared as files")
    parser.add_argument("--rehearse", metavar="DEVICE", help="does before the first request what "
                        "the first problem on DEVICE would wait for")
    options = parser.parse_args()
    # Before PyTorch is imported.
    os.environ.setdefault("PYTORCH_ALLOC_CONF", f"max_split_size_mb:{_LARGEST_SPLIT_MB}")

    from .failure import CONTEXT_LOST
    from .protocol import serve, take_standard_streams

    requests, responses = take_standard_streams()
    warnings.simplefilter("ignore")
    try:
        from .session import Session
    except ImportError as error:
        return _serve_without_torch(requests, responses, error)
    from .rehearsal import rehearse, settle

    if options.rehearse:
        rehearse(options.scratch, options.rehearse)
    settle()
    session = Session(options.scratch)
    is_well = True
    try:
        is_well = serve(session, requests, responses)
    finally:
        if is_well:
            session.close()
    if not is_well:
        # What would clean up asks the device, too.
        os._exit(CONTEXT_LOST)
    return 0


def _serve_without_torch(requests, responses, error):
    for line in requests:
        failure = {
            "reason": "NO_TORCH",
            "message": f"{sys.executable} cannot import PyTorch ({error}); "
            "name a Python that has it in MTMC_PYTHON",
        }
        responses.write(json.dumps({"sequence": _sequence(line), "failure": failure}) + "\n")
        responses.flush()
    return 0


def _sequence(line):
    try:
        return json.loads(line).get("sequence", 0)
    except (ValueError, AttributeError):
        return 0


if __name__ == "__main__":
    sys.exit(main())
