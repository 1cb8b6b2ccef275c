# SPDX-License-Identifier: Apache-2.0
"""One candidate through KernelBench's own `eval_kernel_against_ref`, in this process.

    kernelbench_eval.py SRC PROBLEM CANDIDATE  ->  {"seconds": 82.7, "correct": true, ...}

SRC is the folder `src` of KernelBench's checkout. Runs as its own scripts do: 5
correctness and 100 timing trials. Packages that KernelBench imports at its start and
that an evaluation does not touch (clients of language models) are stood in for by
empty modules where the host lacks them.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import sys
import time
import types

CORRECTNESS_TRIALS, TIMING_TRIALS = 5, 100
UNUSED_PACKAGES = {'dotenv': ['load_dotenv'], 'openai': ['OpenAI'], 'litellm': ['completion'],
                   'requests': [], 'tqdm': ['tqdm']}


class _Record:
    """As much of pydantic's BaseModel as KernelBench's result record needs."""

    def __init__(self, **fields):
        for name, value in fields.items():
            setattr(self, name, value)


def stand_in_for_missing_packages():
    for package, names in UNUSED_PACKAGES.items():
        if importlib.util.find_spec(package) is None:
            module = types.ModuleType(package)
            for name in names:
                setattr(module, name, lambda *args, **kwargs: None)
            sys.modules[package] = module
    if importlib.util.find_spec('pydantic') is None:
        module = types.ModuleType('pydantic')
        module.BaseModel = _Record
        sys.modules['pydantic'] = module


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('src', help="KernelBench's folder src")
    parser.add_argument('problem', type=pathlib.Path)
    parser.add_argument('candidate', type=pathlib.Path)
    arguments = parser.parse_args()
    begin = time.monotonic()
    # What KernelBench prints must not mix with the answer.
    answer = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    stand_in_for_missing_packages()
    sys.path.insert(0, arguments.src)
    from kernelbench import eval as kernelbench  # pylint: disable=import-error,import-outside-toplevel
    result = kernelbench.eval_kernel_against_ref(
        arguments.problem.read_text(), arguments.candidate.read_text(),
        num_correct_trials=CORRECTNESS_TRIALS, num_perf_trials=TIMING_TRIALS,
        measure_performance=True, timing_method='cuda_event', backend='cuda')
    reply = {'seconds': time.monotonic() - begin, 'compiled': bool(result and result.compiled),
             'correct': bool(result and result.correctness),
             'ours_ms': result.runtime if result else None}
    if not reply['correct']:
        reply['failure'] = str(result.metadata if result else 'no result')[:500]
    print(json.dumps(reply), file=answer, flush=True)


if __name__ == '__main__':
    main()
