#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast one device judges candidates, and what that costs beside its kernels.

    scripts/benchmarking/throughput.py --bin build/release/bin --kernelbench KERNELBENCH --json OUT

Parts, each a row of the results:

    build       the compiler alone, over the engine's kernels for our examples
    candidates  candidates per hour and overhead on KernelBench level 1 problems, with
                several programs of the engine for each
    overhead    what a candidate costs beside its kernels, on problems of every kind and
                size, once their reference is at hand; second sessions as in a search, of
                winners and surprises
    kernelbench KernelBench's own evaluation of the same kernels, in a fresh process each
    tune64      64 variants of a GEMM: built, screened, the best confirmed
    two_gpu     evaluations per second of two devices over those of one

Runs on any host with PyTorch and a build or an unpacked bundle of mtmc; `candidates`,
`overhead` and `kernelbench` need KernelBench's problems, `kernelbench` its `src` as well.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'scripts'))

from benchmarking import results  # noqa: E402
from benchmarking.engine_programs import Engine, EngineError, to_load_inline, widen_sweep  # noqa: E402
from benchmarking.kernelbench import find_problem, parse_problems  # noqa: E402

# Level and number of KernelBench problems. Those whose cost in its own harness is known
# (reference: 83 s each), all of 6.4 GB a tensor;
PROBLEMS = ((1, 19), (1, 21), (1, 22), (1, 26))
# two of them, which are enough: each takes more than a minute there;
KERNELBENCH_CANDIDATES = ((1, 19), (1, 26))
# and some of every kind and size.
MIXED_PROBLEMS = ((1, 1), (1, 23), (1, 36), (1, 42), (1, 88), (1, 95), (2, 12), (2, 76))
PARTS = ('build', 'candidates', 'overhead', 'tune64', 'two_gpu', 'kernelbench')
NEED_KERNELBENCH = ('candidates', 'overhead', 'kernelbench')
EXAMPLES = sorted((ROOT / 'examples/problems').glob('*.py'))
GEMM = '''import torch


class Model(torch.nn.Module):
    def forward(self, A, B):
        return torch.matmul(A, B)


def get_inputs():
    return [torch.rand(4096, 4096), torch.rand(4096, 4096)]


def get_init_inputs():
    return []
'''
TILE = 'tile matmul to 128x128 blocks with 8x8 micro-tiles'


class Benchmark:
    def __init__(self, options, work):
        self._options = options
        self._work = work
        dialect = 'cuda' if options.device.startswith('cuda') else 'opencl'
        self._suffix = '.cu' if dialect == 'cuda' else '.cl'
        self._python = options.python or sys.executable
        self._engine = Engine(options.bin, self._python, dialect)

    # Parts: each returns its row.

    def build(self):
        """Every example once with an empty cache and nothing prefetched."""
        with concurrent.futures.ThreadPoolExecutor(self._options.jobs) as pool:
            texts = pool.map(lambda problem: self._engine.program(self._trace(problem)), EXAMPLES)
        entries = [self._entry(problem, text, problem.stem, FAST) for problem, text in zip(EXAMPLES, texts)]
        summary, _ = self._evaluate('build', entries, '--no-prefetch')
        times = summary.get('calls_ms', {}).get('builder.build', {})
        return {'cases': len(entries), 'p50_ms': times.get('p50'), 'p95_ms': times.get('p95'),
                'held': times.get('p50', 1e9) <= 100}

    def candidates(self):
        entries = self._variations(self._options.problems, self._options.programs, repeats=True)
        summary, lines = self._evaluate('candidates', entries)
        correct = [line for line in lines if is_measured(line)]
        first = [of_problem[0]['wall_seconds'] for of_problem in by_problem(lines).values()]
        return {'cases': len(entries), 'correct': len(correct),
                'seconds_per_candidate': summary['wall_seconds'] / max(1, len(lines)),
                'candidates_per_hour': summary.get('evaluations_per_hour'),
                'overhead_ms_p50': (summary.get('overhead_ms') or {}).get('p50'),
                'overhead_ms_p95': (summary.get('overhead_ms') or {}).get('p95'),
                'device_busy_ratio': summary.get('device_busy_ratio'),
                'first_of_problem_s': results.median(first),
                'by_problem': anatomy(lines),
                'summary': summary,
                'held': len(correct) == len(entries)}

    def overhead(self):
        entries = self._variations(MIXED_PROBLEMS, self._options.programs // 2)
        _, lines = self._evaluate('overhead', entries, '--winners')
        # The first of each problem prepares the reference.
        every = [overhead_ms(line) for of_problem in by_problem(lines).values()
                 for line in of_problem[1:] if is_measured(line)]
        return {'cases': len(every), 'overhead_ms_p50': results.median(every), 'overhead_ms_p95': quantile(every, 0.95),
                'by_problem': anatomy(lines),
                'held': bool(every) and results.median(every) <= 50}

    def kernelbench(self):
        """Cost of one candidate in KernelBench's own harness."""
        seconds, failures = [], []
        for level, number in self._options.harness_problems:
            problem = find_problem(self._options.kernelbench, level, number)
            candidate = self._work / f'{problem.stem}_new.py'
            candidate.write_text(to_load_inline(self._engine.program(self._trace(problem))))
            # A fresh process with nothing built, as in its scripts.
            extensions = self._work / f'extensions-{number}'
            begin = time.monotonic()
            done = subprocess.run(
                [self._python, str(ROOT / 'scripts/benchmarking/kernelbench_eval.py'),
                 str(self._options.kernelbench.resolve() / 'src'), str(problem), str(candidate)],
                capture_output=True, text=True, timeout=300, check=False, cwd=self._work,
                env={**os.environ, 'TORCH_EXTENSIONS_DIR': str(extensions)})
            wall = time.monotonic() - begin
            reply = json.loads(done.stdout) if done.stdout.strip() else {'failure': done.stderr[-800:]}
            if reply.get('correct'):
                seconds.append(wall)
            else:
                failures.append(reply.get('failure'))
        row = {'cases': len(self._options.harness_problems), 'held': not failures}
        if seconds:
            row['seconds_per_candidate'] = sum(seconds) / len(seconds)
        if failures:
            row['failure'] = str(failures[0])
        return row

    def tune64(self):
        problem = self._work / 'gemm.py'
        problem.write_text(GEMM)
        graph = self._trace(problem)
        actions = self._engine.actions(graph, ())
        applied = [next(action for action in actions if action.startswith(TILE))]
        applied.append(next(a for a in self._engine.actions(graph, applied) if a.startswith('tune ')))
        text = widen_sweep(self._engine.program(graph, applied))
        options = {'max_variants': 64, 'omit_profile': True}
        # The second one finds the problem loaded, as in a search; its text differs, so
        # that nothing is built yet.
        entries = [self._entry(problem, self._engine.program(graph), 'warm', FAST),
                   self._entry(problem, text, 'tune64', options)]
        _, lines = self._evaluate('tune64', entries, '--no-prefetch')
        line = next(line for line in lines if line['name'] == 'tune64')
        evaluation = line.get('evaluation', {})
        variants = evaluation.get('variants', [])
        row = {'cases': len(variants), 'seconds': line['wall_seconds'],
               'stage_s': stage_seconds(evaluation), 'calls': line.get('calls'),
               'failed_variants': sum('failure' in variant for variant in variants),
               'best': variants[0] if variants else None,
               'held': len(variants) == 64 and 'measurement' in evaluation and line['wall_seconds'] <= 5}
        if 'failure' in evaluation or 'evaluation' not in line:
            row['failure'] = json.dumps(evaluation.get('failure') or line)[:500]
        return row

    def two_gpu(self):
        devices = [name for name in pathlib.Path('/dev').glob('nvidia[0-9]*')]
        if len(devices) < 2:
            return None
        # Enough that the start, 8 s of two processes at once, does not hide the rate.
        entries = self._variations_of(EXAMPLES, self._options.programs // 2)
        alone, _ = self._evaluate('one', entries, device='cuda:0')
        both = [self._start('two-0', entries, device='cuda:0'), self._start('two-1', entries, device='cuda:1')]
        rates = [self._finish(run)[0]['evaluations_per_hour'] for run in both]
        return {'cases': len(entries), 'one_per_second': alone['evaluations_per_hour'] / 3600,
                'two_per_second': sum(rates) / 3600, 'ratio': sum(rates) / alone['evaluations_per_hour'],
                'held': sum(rates) >= 1.9 * alone['evaluations_per_hour']}

    # Their means.

    def _variations(self, problems, count, repeats=False):
        """At most `count` programs of the engine for each of the problems, in turn; as
        many, where those that there are may repeat under another text."""
        paths = [find_problem(self._options.kernelbench, level, number) for level, number in problems]
        return self._variations_of(paths, count, repeats)

    def _variations_of(self, paths, count, repeats=False):
        def texts_of(path):
            found = self._engine.variations(self._trace(path), count)
            return repeated(found, count) if repeats else found

        with concurrent.futures.ThreadPoolExecutor(self._options.jobs) as pool:
            texts = pool.map(texts_of, paths)
            return [self._entry(path, text, f'{path.stem}-{i}', {})
                    for path, of_path in zip(paths, texts) for i, text in enumerate(of_path)]

    def _trace(self, problem):
        graph = self._work / f'{problem.stem}.json'
        return graph if graph.exists() else self._engine.trace(problem, self._work)

    def _entry(self, problem, text, name, options):
        program = self._work / f'{name}{self._suffix}'
        program.write_text(text)
        return {'name': name, 'problem': str(problem), 'program': str(program), 'options': options}

    def _evaluate(self, name, entries, *flags, device=None):
        return self._finish(self._start(name, entries, *flags, device=device))

    def _start(self, name, entries, *flags, device=None):
        folder = self._work / name
        folder.mkdir(exist_ok=True)
        manifest, verdicts = folder / 'manifest.jsonl', folder / 'verdicts.jsonl'
        manifest.write_text(''.join(json.dumps(entry) + '\n' for entry in entries))
        command = [str(self._options.bin / 'mtmc-evaluate'), '--manifest', str(manifest), '--json', str(verdicts),
                   '--device', device or self._options.device, '--python', self._python,
                   '--scratch', str(folder / 'scratch'), *flags]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return process, verdicts

    def _finish(self, run):
        process, verdicts = run
        try:
            out, error = process.communicate(timeout=self._options.part_timeout)
        except subprocess.TimeoutExpired:
            process.terminate()
            out, error = process.communicate(timeout=30)
        if not out.strip():
            raise EngineError(f'mtmc-evaluate: {error[-1500:]}')
        lines = [json.loads(line) for line in verdicts.read_text().splitlines()]
        return json.loads(out), lines


# Enough to get through every stage.
FAST = {'min_samples': 5, 'max_noise_ratio': 0.5, 'hidden_seeds': 1, 'omit_profile': True,
        'omit_confirmation': True}


def repeated(texts, count):
    """`count` texts that differ, so that each is built."""
    rounds = ((text, i // len(texts)) for i, text in zip(range(count), itertools.cycle(texts)))
    return [text + f'// Again: {number}.\n' if number else text for text, number in rounds]


def stage_seconds(evaluation):
    def seconds(time_text):
        clock = time_text.rstrip('Z').split('T')[1]
        hours, minutes, rest = clock.split(':')
        return int(hours) * 3600 + int(minutes) * 60 + float(rest)

    return {span['stage'].removeprefix('STAGE_').lower():
            results.rounded(seconds(span['end_time']) - seconds(span['start_time']))
            for span in evaluation.get('spans', [])}


def anatomy(lines):
    """Where the time of a problem's candidates goes: medians over all but its first one."""
    found = {}
    for problem, of_problem in by_problem(lines).items():
        later = [line for line in of_problem[1:] if is_measured(line)]
        stages = [stage_seconds(line['evaluation']) for line in later]
        calls = [line.get('calls', {}) for line in later]
        failed = [line for line in of_problem if not is_measured(line)]
        found[problem] = {
            'failure': failure_of(failed[0]) if failed else None,
            'first_s': of_problem[0]['wall_seconds'],
            'wall_s': results.median([line['wall_seconds'] for line in later]),
            'overhead_ms': results.median([overhead_ms(line) for line in later]),
            'kernels_s': results.median([line['evaluation']['kernel_seconds'] for line in later]),
            'stages_s': {name: results.median([stage.get(name, 0) for stage in stages])
                         for name in sorted({name for stage in stages for name in stage})},
            'calls': calls[len(calls) // 2] if calls else {},
        }
    return found


def failure_of(line):
    """What the line says instead of a time."""
    why = line.get('evaluation', {}).get('failure') or line.get('worker_failure') or line.get('workerFailure')
    return json.dumps(why or line)[:1500]


def is_measured(line):
    return 'measurement' in line.get('evaluation', {})


def by_problem(lines):
    """The lines of each problem in their order, by the name that `_variations` gave."""
    found = {}
    for line in lines:
        found.setdefault(line['name'].rsplit('-', 1)[0], []).append(line)
    return found


def overhead_ms(line):
    """Wall time of an evaluation less the time of the kernels that it timed."""
    return (line['wall_seconds'] - line['evaluation']['kernel_seconds']) * 1e3


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else None


def summarize(rows):
    by_check = {row['check']: row for row in rows}
    ours = by_check.get('candidates', {})
    theirs = by_check.get('kernelbench', {})
    summary = {'build_ms_p50': by_check.get('build', {}).get('p50_ms'),
               'overhead_ms_p50': by_check.get('overhead', {}).get('overhead_ms_p50'),
               'overhead_6gb_ms_p50': ours.get('overhead_ms_p50'),
               'candidates_per_hour': ours.get('candidates_per_hour'),
               'device_busy_ratio': ours.get('device_busy_ratio'),
               'tune64_s': by_check.get('tune64', {}).get('seconds'),
               'two_gpu_ratio': by_check.get('two_gpu', {}).get('ratio')}
    if ours.get('seconds_per_candidate') and theirs.get('seconds_per_candidate'):
        summary['candidates_per_hour_ratio'] = theirs['seconds_per_candidate'] / ours['seconds_per_candidate']
    return results.without_absent(summary)


def run(options, work):
    benchmark = Benchmark(options, work)
    file = results.ResultFile(options.json, {'command': 'scripts/benchmarking/throughput.py'}, summarize,
                              resumes=True)
    for part in options.only.split(','):
        begin = time.monotonic()
        try:
            row = getattr(benchmark, part)()
        except (EngineError, OSError, subprocess.SubprocessError, ValueError, StopIteration) as error:
            row = {'held': False, 'failure': f'{type(error).__name__}: {error}'[:1500]}
        if row is None:
            print(f'{part}: needs two devices')
            continue
        row = {'check': part, **row, 'part_s': time.monotonic() - begin}
        file.put(row, ('check',))
        print(json.dumps(results.without_absent(row)), flush=True)
    print(json.dumps(summarize(file.rows), indent=2))
    return 0 if all(row['held'] for row in file.rows) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--bin', required=True, type=pathlib.Path, help='folder of mtmc-evaluate and mtmc-engine')
    parser.add_argument('--json', required=True, type=pathlib.Path, help='results file; rows of other parts are kept')
    parser.add_argument('--kernelbench', type=pathlib.Path, help="KernelBench's checkout")
    parser.add_argument('--only', default=','.join(PARTS), help='parts to run')
    parser.add_argument('--device', default='cuda:0', help='cuda:N or opencl:N')
    parser.add_argument('--problems', type=parse_problems, default=PROBLEMS,
                        help='those of `candidates`, such as 1/19,1/21')
    parser.add_argument('--harness-problems', type=parse_problems, default=KERNELBENCH_CANDIDATES,
                        help='those of `kernelbench`')
    parser.add_argument('--programs', type=int, default=16, help='programs per problem in `candidates`')
    parser.add_argument('--jobs', type=int, default=4, help='problems prepared at a time')
    parser.add_argument('--part-timeout', type=float, default=240, help='longest time of one mtmc-evaluate in seconds')
    parser.add_argument('--python', default=os.environ.get('MTMC_PYTHON'), help='interpreter that has PyTorch')
    options = parser.parse_args()
    unknown = set(options.only.split(',')) - set(PARTS)
    if unknown:
        parser.error(f'unknown parts: {", ".join(sorted(unknown))}')
    if options.kernelbench is None:
        options.only = ','.join(part for part in options.only.split(',') if part not in NEED_KERNELBENCH)
    options.bin = options.bin.resolve()
    with tempfile.TemporaryDirectory(prefix='mtmc-throughput-') as folder:
        return run(options, pathlib.Path(folder))


if __name__ == '__main__':
    sys.exit(main())
