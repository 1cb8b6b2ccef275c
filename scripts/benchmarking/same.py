#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/benchmarking/same.py: whether a program that does what eager does is called SAME.

Each candidate calls the operators that the problem's `forward` calls, from the library
that eager runs, so that both sides launch the same kernels: one in the runner, one in the
process of the user's Python. Every round starts both processes anew.

    scripts/benchmarking/same.py --bin build/release/bin --device cuda:0 --rounds 10 --json same.json
"""

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

# Without a device that hangs, a round takes half a minute.
ROUND_TIMEOUT = 240


@dataclasses.dataclass(frozen=True)
class Chain:
    """Unary operators of ATen, one after the other, on so many elements."""

    name: str
    elements: int
    operators: tuple

    def problem(self):
        steps = ''.join(f'        x = torch.{op}(x)\n' for op in self.operators)
        return (f'import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n{steps}        return x\n\n\n'
                f'def get_inputs():\n    return [torch.randn({self.elements})]\n\n\n'
                'def get_init_inputs():\n    return []\n')

    def program(self, dialect):
        names = ['x', *(f'h{i}' for i in range(1, len(self.operators))), 'y']
        kind = f'f32[{self.elements}]'
        lines = [f'mtmc 1 {dialect}', f'input x {kind}', *(f'buffer {name} {kind}' for name in names[1:-1]),
                 f'output y {kind}']
        lines += [f'call aten::{op}({source}) -> {target}'
                  for op, source, target in zip(self.operators, names, names[1:])]
        return ''.join(f'//@ {line}\n' for line in lines)


CHAINS = (
    Chain('1 launch, 65,536 elements', 1 << 16, ('tanh',)),
    Chain('3 launches, 65,536 elements', 1 << 16, ('tanh', 'sigmoid', 'relu')),
    Chain('9 launches, 65,536 elements', 1 << 16, ('tanh', 'sigmoid', 'relu') * 3),
    Chain('1 launch, 67,108,864 elements', 1 << 26, ('tanh',)),
)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--bin', type=pathlib.Path, required=True, help='folder of mtmc-evaluate')
    parser.add_argument('--device', default='cuda:0')
    parser.add_argument('--rounds', type=int, default=10, help='pairs of processes')
    parser.add_argument('--repeats', type=int, default=3, help='evaluations of each program by one pair')
    parser.add_argument('--time-limit', type=float, default=float('inf'), help='seconds after which no round begins')
    parser.add_argument('--json', type=pathlib.Path, required=True)
    return parser.parse_args()


def write_manifest(folder, dialect, repeats):
    entries = []
    for number, chain in enumerate(CHAINS):
        problem, program = folder / f'{number}.py', folder / f'{number}.txt'
        problem.write_text(chain.problem())
        program.write_text(chain.program(dialect))
        calls = sorted({f'aten::{op}' for op in chain.operators})
        entries += [{'name': chain.name, 'problem': str(problem), 'program': str(program), 'allowed_calls': calls}] * repeats
    manifest = folder / 'manifest.jsonl'
    manifest.write_text(''.join(json.dumps(entry) + '\n' for entry in entries))
    return manifest


def evaluate(arguments, manifest, folder):
    """The evaluations of one round, by name."""
    verdicts = folder / 'verdicts.jsonl'
    command = [arguments.bin / 'mtmc-evaluate', '--manifest', manifest, '--json', verdicts, '--device', arguments.device,
               '--python', os.environ.get('MTMC_PYTHON', sys.executable)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=ROUND_TIMEOUT)
    if done.returncode or not verdicts.exists():
        raise SystemExit(f'mtmc-evaluate exited with {done.returncode}: {done.stderr[-2000:]}')
    found = collections.defaultdict(list)
    for line in verdicts.read_text().splitlines():
        entry = json.loads(line)
        found[entry['name']].append(entry.get('evaluation', {}))
    return found


def summarize(chain, evaluations):
    row = {'name': chain.name, 'launches': len(chain.operators), 'runs': len(evaluations)}
    outcomes = collections.Counter()
    columns = collections.defaultdict(list)
    for evaluation in evaluations:
        if not evaluation.get('comparisons'):
            outcomes['failed'] += 1
            row['failure'] = evaluation.get('failure')
            continue
        comparison = evaluation['comparisons'][0]
        outcomes[comparison['outcome'].removeprefix('OUTCOME_').lower()] += 1
        measurement, baseline = evaluation['measurement'], comparison['baseline_measurement']
        columns['speedups'].append(comparison['speedup'])
        columns['speedup_lows'].append(comparison['speedup_low'])
        columns['speedup_highs'].append(comparison['speedup_high'])
        columns['offset_seconds'].append(comparison.get('offset_seconds', 0.0))
        columns['candidate_seconds'].append(measurement['median_seconds'])
        columns['baseline_seconds'].append(baseline['median_seconds'])
        columns['noise_ratios'].append([measurement.get('noise_ratio', 0.0), baseline.get('noise_ratio', 0.0)])
        columns['samples'].append(len(measurement['samples_seconds']))
        columns['late_samples'].append(measurement.get('late_samples', 0))
    return row | {key: outcomes[key] for key in ('same', 'faster', 'slower', 'ambiguous', 'failed')} | columns


def main():
    arguments = parse_arguments()
    begin = time.monotonic()
    found = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        dialect = 'cuda' if arguments.device.startswith('cuda') else 'opencl'
        manifest = write_manifest(folder, dialect, arguments.repeats)
        for _ in range(arguments.rounds):
            if time.monotonic() - begin > arguments.time_limit:
                break
            for key, evaluations in evaluate(arguments, manifest, folder).items():
                found[key] += evaluations
            rows = [summarize(chain, found[chain.name]) for chain in CHAINS]
            arguments.json.write_text(''.join(json.dumps(row) + '\n' for row in rows))
    print(f"{'candidate = eager':32s} {'us':>9s} {'runs':>5s} {'SAME':>5s} {'FASTER':>7s} {'SLOWER':>7s} {'AMBIGUOUS':>10s} {'failed':>7s}")
    for row in rows:
        seconds = statistics.median(row.get('candidate_seconds', [0.0]))
        print(f"{row['name']:32s} {1e6 * seconds:9.2f} {row['runs']:5d} {row['same']:5d} {row['faster']:7d} "
              f"{row['slower']:7d} {row['ambiguous']:10d} {row['failed']:7d}")


if __name__ == '__main__':
    main()
