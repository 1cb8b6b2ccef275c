#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the intake check recognises KernelBench's known flawed problems.

    scripts/benchmarking/intake.py --kernelbench .kernelbench --device cuda:0 --out intake.json

Loads each problem into a reference process of its own kind, without the rest of the
product, and compares what the inspection says of its behaviour with the table below.
The table is for this report only: the product knows no problem by name or number.
A flawed problem is a hit when the inspection names one of the flaws listed for it; a
sound one is a false alarm when it names any.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import queue
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What KernelBench's own tolerances let pass.
_ZEROS = ('kernelbench_zeros',)
_HALF_ZEROS = ('kernelbench_zeros', 'half_zeros')
_REPLAY = ('kernelbench_replay', 'input_independent', 'constant_output')
_HALF_REPLAY = ('kernelbench_replay', 'half_replay', 'partial_input')
_INPUT = ('kernelbench_input', 'public_input')
_REDUNDANT = ('identity_operation', 'dead_operation', 'unused_parameter')

# (level, problem) to the flaws of which one must be named, and why.
FLAWED = {}
for _numbers, _flaws, _why in (
    ({1: (23, 37), 2: (9, 38)}, _ZEROS, 'zeros pass at 1e-4'),
    ({2: (23, 80, 83)}, ('constant_output', *_ZEROS), 'the same constant for all inputs'),
    ({1: (39, 53), 2: (99,)}, _HALF_ZEROS, 'zeros pass at 1e-2'),
    ({2: (36, 42, 65), 3: (3, 7, 11, 12, 18)}, _REPLAY, 'a first result passes for all inputs'),
    ({1: (49, 99), 2: (8, 10, 13, 22, 45, 49, 56, 58, 64, 67, 84, 89, 91, 96), 3: (4, 5, 46, 47)},
     (*_HALF_REPLAY, *_REPLAY), 'a first result passes at 1e-2'),
    ({1: (94, 96, 100)}, _HALF_REPLAY, 'a closed form or a sample of the data passes'),
    ({1: (19, 20, 31, 32), 2: (51,)}, (*_INPUT, 'half_input'), 'the input passes'),
    ({1: (90,)}, ('partial_input', 'DISTRIBUTION_TIMES_3'), 'products underflow and overflow'),
    ({1: (98,)}, ('DISTRIBUTION_NEGATED', *_HALF_REPLAY), 'logarithms of negative numbers'),
    ({1: (95,)}, ('integer_input',), 'integer targets are cast to floats'),
    ({2: (7, 44, 81, 95), 3: (36, 37)}, _REDUNDANT, 'redundant or dead operations'),
    ({2: (66,)}, ('random_output', 'random_operation'), 'dropout without a seed'),
    ({3: (28,)}, ('input_independent', *_REPLAY), 'the class token never sees the image'),
    ({3: (35,)}, ('random_output', 'random_operation', *_REPLAY), 'a random state in forward'),
    ({3: (48, 49)}, ('huge_output', *_REDUNDANT), 'outputs of 1e13 and more'),
):
    for _level, _ids in _numbers.items():
        for _id in _ids:
            FLAWED[_level, _id] = (_flaws, _why)

SOUND = [
    *((1, n) for n in (1, 2, 3, 7, 8, 9, 10, 13, 16, 18, 21, 22, 25, 26, 29, 30, 33, 35, 36, 40, 42,
                       43, 45, 46, 47, 50, 55, 61, 63, 67, 77, 82, 88, 89)),
    *((2, n) for n in (1, 2, 4, 12, 16, 17, 19, 21, 29, 31, 33, 35, 37, 39, 40, 53, 54, 59, 60, 69,
                       71, 76, 82, 86, 94)),
    *((3, n) for n in (8, 13, 14, 17, 21, 25, 43)),
]


class ReferenceProcess:
    """A reference process that is started again when it dies or is late."""

    def __init__(self, python, device, log):
        self._device = device
        self._log = log
        self._scratch = tempfile.TemporaryDirectory(prefix='mtmc-intake-')
        self._command = [python, '-m', 'mtmc_reference', '--scratch', self._scratch.name]
        self._child = None

    def inspect(self, path, timeout):
        """The Inspection, or {'failure': why}."""
        if self._child is None:
            path_of_package = str(ROOT / 'worker' / 'reference')
            self._child = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
                env={**os.environ, 'PYTHONPATH': path_of_package}, start_new_session=True)
        request = {'sequence': 1, 'load': {'path': str(path), 'device': self._device}}
        try:
            self._child.stdin.write(json.dumps(request).encode() + b'\n')
            self._child.stdin.flush()
            answer = json.loads(self._read(timeout))
        except (OSError, ValueError) as error:
            self.stop()
            return {'failure': str(error) or 'the process died'}
        if 'failure' in answer:
            return {'failure': f"{answer['failure']['reason']}: {answer['failure']['message']}"}
        return answer['loaded']['inspection']

    def stop(self):
        if self._child is not None:
            os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
            self._child.stdin.close()
            self._child.stdout.close()
            self._child = None

    def _read(self, timeout):
        deadline = time.monotonic() + timeout
        parts = []
        while not parts or not parts[-1].endswith(b'\n'):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._child.stdout], [], [], left)[0]:
                raise ValueError(f'not done within {timeout:.0f} s')
            part = self._child.stdout.read1(1 << 20)
            if not part:
                raise ValueError('the process died')
            parts.append(part)
        return b''.join(parts)


def find_problems(folder, wanted):
    """[((level, number), path)] of the files that are there, in the order of `wanted`."""
    files = {}
    for path in pathlib.Path(folder).glob('**/level[1-3]/*.py'):
        number = re.match(r'(\d+)_', path.name)
        if number:
            files.setdefault((int(path.parent.name[-1]), int(number[1])), path)
    return [(key, files[key]) for key in wanted if key in files]


def judge(key, inspection):
    """The row of the report."""
    expected, why = FLAWED.get(key, ((), ''))
    dropped = sorted(inspection.get('droppedDistributions', {}))
    found = inspection.get('flaws', []) + inspection.get('passingProbes', [])
    if 'failure' in inspection:
        outcome = 'failed'
    elif key in FLAWED:
        outcome = 'hit' if set(expected) & {*found, *dropped} else 'miss'
    else:
        outcome = 'false_alarm' if found else 'clean'
    return {'level': key[0], 'problem': key[1], 'outcome': outcome, 'why': why,
            'expected': list(expected), 'flaws': inspection.get('flaws', []),
            'passing_probes': inspection.get('passingProbes', []), 'dropped': dropped,
            'oracle': inspection.get('versions', {}).get('oracle', ''),
            'failure': inspection.get('failure', '')}


def parse_selection(text):
    """`1/19,2/80` to keys."""
    return [tuple(int(part) for part in word.split('/')) for word in text.split(',') if word]


def run(flags, problems):
    """Rows in the order in which they are done; prints each."""
    rows, lock, idle = [], threading.Lock(), queue.SimpleQueue()
    start = time.monotonic()
    with open(flags.log or os.devnull, 'ab') as log:
        processes = [ReferenceProcess(flags.python, flags.device, log) for _ in range(flags.jobs)]
        for process in processes:
            idle.put(process)

        def check(key, path):
            process = idle.get()
            begin = time.monotonic()
            try:
                row = judge(key, process.inspect(path, flags.timeout))
            finally:
                idle.put(process)
            row.update(name=path.stem, seconds=round(time.monotonic() - begin, 2))
            with lock:
                rows.append(row)
                told = row['flaws'] + row['passing_probes'] + row['dropped']
                told = row['failure'] or ' '.join(told)
                print(f"{time.monotonic() - start:6.1f} s {len(rows):3d}/{len(problems)} "
                      f"{key[0]}/{key[1]:<3d} {row['outcome']:<11s} {row['seconds']:5.1f} s {told}",
                      flush=True)

        try:
            with concurrent.futures.ThreadPoolExecutor(flags.jobs) as pool:
                for done in [pool.submit(check, key, path) for key, path in problems]:
                    done.result()
        finally:
            for process in processes:
                process.stop()
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--kernelbench', default=str(ROOT / '.kernelbench'), help='its folder')
    parser.add_argument('--device', default='cuda:0', help='cpu or cuda:N')
    parser.add_argument('--problems', help='such as 1/19,2/80; default the whole table')
    parser.add_argument('--out', required=True, help='file for the rows as JSON')
    parser.add_argument('--python', default=os.environ.get('MTMC_PYTHON', sys.executable),
                        help='interpreter that has PyTorch')
    parser.add_argument('--jobs', type=int, default=3, help='problems at a time')
    parser.add_argument('--timeout', type=float, default=60, help='seconds for one problem')
    parser.add_argument('--log', help='file for what the problems print')
    flags = parser.parse_args()
    wanted = parse_selection(flags.problems) if flags.problems else [*FLAWED, *SOUND]
    problems = find_problems(flags.kernelbench, wanted)
    if not problems:
        print(f'no problem of the table is in {flags.kernelbench}', file=sys.stderr)
        return 2
    start = time.monotonic()
    rows = run(flags, problems)
    counts = {outcome: sum(row['outcome'] == outcome for row in rows)
              for outcome in ('hit', 'miss', 'clean', 'false_alarm', 'failed')}
    summary = {'device': flags.device, 'seconds': round(time.monotonic() - start, 1), **counts}
    rows.sort(key=lambda row: (row['level'], row['problem']))
    report = json.dumps({'summary': summary, 'rows': rows}, indent=1)
    pathlib.Path(flags.out).write_text(report + '\n')
    print(json.dumps(summary))
    return 0


if __name__ == '__main__':
    sys.exit(main())
