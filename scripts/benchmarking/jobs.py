# SPDX-License-Identifier: Apache-2.0
"""Jobs of the whole system, one at a time, as rows of a results file.

A JobRunner has a local stack with a private data folder and a harness process. Each
job's winner is exported, checked against its problem and timed in plain PyTorch; on
CUDA with KernelBench's own timing function.
"""

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import time

from benchmarking import results
from benchmarking.harness_process import HarnessProcess
from benchmarking.stack import CommandError, Stack, StackError

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKER_RESTS_SECONDS = 12


def add_arguments(parser):
    """Flags of every table that is made of jobs."""
    installation = parser.add_mutually_exclusive_group()
    installation.add_argument('--build', type=pathlib.Path, default=ROOT / 'build/release', help='build tree to run')
    installation.add_argument('--bundle-dir', type=pathlib.Path, help='unpacked bundle to run instead')
    parser.add_argument('--device', default='auto', help='auto, cuda:N or opencl:N')
    parser.add_argument('--python', default=os.environ.get('MTMC_PYTHON'), help='interpreter that has PyTorch')
    parser.add_argument('--job-timeout', type=float, default=120, help='longest time of one job in seconds')
    parser.add_argument('--check-timeout', type=float, default=120, help='longest time of one check in seconds')
    parser.add_argument('--time-limit', type=float, default=0, help='start no job after this many seconds; 0 is none')
    parser.add_argument('--job-options', default='', help='more options for `mtmc jobs create`')
    parser.add_argument('--work', type=pathlib.Path, help='folder for store, logs and exports; default a temporary one')


def portable(argument):
    """An argument as anyone can give it: a path of this machine by its last part."""
    return pathlib.PurePath(argument).name if argument.startswith('/') else argument


def find_python(asked):
    if asked:
        return shutil.which(asked) or asked
    venv = ROOT / '.venv/bin/python'
    return str(venv) if venv.exists() else shutil.which('python3')


def milliseconds(seconds):
    return None if seconds is None else seconds * 1e3


def enum_text(name, prefix):
    return name.removeprefix(prefix).lower() if name else None


def actions_to(name, candidates):
    """Texts of the actions that led to a candidate, first one first."""
    actions = []
    while name in candidates:
        candidate = candidates[name]
        actions.insert(0, candidate.get('action', {}).get('text'))
        name = next(iter(candidate.get('parents', [])), None)
    return [action for action in actions if action]


def row_of_job(job, candidates):
    """What a finished job and its candidates by name say."""
    best = job.get('best_candidate')
    evaluation = candidates.get(best, {}).get('evaluation', {})
    comparisons = {c['baseline']: c for c in evaluation.get('comparisons', [])}
    inspected = {b['baseline']: b.get('median_seconds') for b in job.get('inspection', {}).get('baselines', [])}

    def baseline_ms(name):
        seconds = comparisons.get(name, {}).get('baseline_measurement', {}).get('median_seconds')
        return milliseconds(seconds or inspected.get(name))

    eager = comparisons.get('BASELINE_EAGER', {})
    measurement = evaluation.get('measurement', {})
    interval = [eager.get('speedup_low'), eager.get('speedup_high')]
    row = {
        'verified': evaluation.get('verdict') == 'VERDICT_CORRECT' and bool(measurement),
        'comparison': enum_text(eager.get('outcome'), 'OUTCOME_'),
        'eager_ms': baseline_ms('BASELINE_EAGER'),
        'eager_tf32_ms': baseline_ms('BASELINE_EAGER_TF32'),
        'ours_ms': milliseconds(measurement.get('median_seconds')),
        'speedup_eager': eager.get('speedup'),
        'interval': [results.rounded(v) for v in interval] if None not in interval else None,
        'trials': job.get('budget_use', {}).get('trials', 0),
        'ended_by': enum_text(job.get('end_reason'), 'END_REASON_'),
        'kernelbench_allclose': evaluation.get('kernelbench_allclose', False) if measurement else None,
        'flawed': job.get('inspection', {}).get('passing_probes') or None,
        'actions': actions_to(best, candidates) or None,
        'candidates_correct': sum('measurement' in c.get('evaluation', {}) for c in candidates.values()),
    }
    failure = job.get('failure')
    if failure:
        row['failure'] = f"{failure.get('reason')}: {failure.get('message')}"
    return row


class JobRunner:
    """One stack, one harness, one job at a time.

    `baselines` are those of the job, as `mtmc jobs create` calls them; `rivals` what the
    harness times beside the exported file in its class: `graph`, `compile`.
    """

    def __init__(self, options, work, baselines=('eager', 'eager_tf32'), rivals=()):
        self._options = options
        self._baselines = baselines
        self._rivals = list(rivals)
        self._work = work
        installation = options.bundle_dir or options.build
        python = find_python(options.python)
        self._python = python
        self._program = installation.resolve() / 'bin' / 'mtmc'
        if not self._program.exists():
            raise StackError(f'{self._program} does not exist; run scripts/build or unpack a bundle')
        self._stack = Stack(self._program, work / 'stack', options.device, python)
        self._harness = None
        for folder in ('exports', 'jobs'):
            (work / folder).mkdir(parents=True, exist_ok=True)

    def start(self):
        """Head of the results file."""
        self._stack.start()
        worker = self._await_worker()
        device = worker.get('device', {})
        self._dialect = 'cuda' if 'DIALECT_CUDA' in device.get('dialects', []) else 'opencl'
        timing = None
        if self._dialect == 'cuda' and self._options.checkout:
            timing = self._options.checkout / 'src/kernelbench/timing.py'
            if not timing.is_file():
                raise StackError(f"{timing} does not exist, by which files are timed; "
                                 "give a whole checkout of KernelBench, not its problems alone")
        index = self._options.device.partition(':')[2] or '0'
        torch_device = f'cuda:{index}' if self._dialect == 'cuda' else 'cpu'
        self._harness = HarnessProcess(self._python, torch_device, timing, self._work / 'harness.log')
        self._harness.start()
        versions = {'mtmc': worker.get('version'), 'driver': device.get('driver_version'),
                    'toolchain': device.get('toolchain_version'), **self._harness.description['versions']}
        script = f'scripts/{pathlib.Path(sys.argv[0]).name}'
        return {'command': shlex.join([script, *map(portable, sys.argv[1:])]), 'commit': self._commit(),
                'device': device.get('product'), 'versions': {k: v for k, v in versions.items() if v}}

    def stop(self):
        if self._harness is not None:
            self._harness.stop()
        self._stack.stop()

    def run(self, name, path, precision):
        """The row of one problem; never fails."""
        row = {'problem': name, 'dialect': self._dialect, 'precision': precision, 'verified': False}
        begin = time.monotonic()
        try:
            if not self._stack.is_running():
                self._stack.start()
            job, made = self._stack.run_job(
                path, self._options.job_timeout, '--precision', precision, '--baseline', *self._baselines,
                *shlex.split(self._options.job_options))
            candidates = {candidate['name']: candidate for candidate in made}
            row['wall_s'] = time.monotonic() - begin
            self._keep(name, precision, job, candidates)
            row |= row_of_job(job, candidates)
            if row['verified']:
                row |= self._check_export(job, path, name, precision)
        except (CommandError, StackError) as error:
            row.setdefault('wall_s', time.monotonic() - begin)
            row['failure'] = str(error)[:500] if self._stack.is_running() else self._stack.obituary()
        return row

    def _await_worker(self):
        deadline = time.monotonic() + Stack.START_SECONDS
        while time.monotonic() < deadline:
            workers = self._stack.run_json('workers', 'list').get('workers', [])
            if workers and workers[0].get('device'):
                return workers[0]
            time.sleep(0.2)
        raise StackError(f'no worker came; see {self._stack.log} and {self._work}/stack/data/logs')

    def _commit(self):
        """The commit that was built: the bundle knows it, a checkout is asked."""
        stamp = self._program.parent.parent / 'share/mtmc/commit'
        if stamp.exists():
            return stamp.read_text().strip()
        command = ['git', '-C', str(ROOT), 'rev-parse', '--short', 'HEAD']
        return subprocess.run(command, capture_output=True, text=True).stdout.strip() or None

    def _keep(self, name, precision, job, candidates):
        """The whole job beside the logs, for whoever asks why."""
        file = self._work / 'jobs' / f"{name.replace('/', '_')}_{precision}.json"
        job = {key: value for key, value in job.items() if key != 'inspection'}
        file.write_text(json.dumps({'job': job, 'candidates': list(candidates.values())}))

    def _check_export(self, job, path, name, precision):
        file = self._work / 'exports' / f"{name.replace('/', '_')}_{precision}.py"
        self._stack.run('export', job['name'], '--file', file)
        request = {'problem': str(path), 'export': str(file), 'precision': precision, 'rivals': self._rivals}
        answer = self._harness.ask(request, self._options.check_timeout)
        if 'out of memory' in answer.get('failure', ''):
            # The worker gives its memory back once it has had nothing to do for a while.
            self._harness.stop()
            time.sleep(WORKER_RESTS_SECONDS)
            answer = self._harness.ask(request, self._options.check_timeout)
        failure = answer.get('failure')
        if not failure and not answer['ok']:
            failure = f"error {answer['error']:.3g} of {answer['allowed']:.3g} allowed"
        return {'export_ok': answer['ok'], 'export_ms': answer.get('ours_ms'),
                'export_eager_ms': answer.get('eager_ms'), 'export_error': answer.get('error'),
                'export_allowed': answer.get('allowed'),
                'export_oracle': answer.get('oracle'), 'export_timed_by': answer.get('timed_by'),
                'export_failure': failure, **answer.get('rivals', {})}


def describe(row):
    """One line for people."""
    if not row['verified']:
        return f"NOT VERIFIED  {row.get('failure', 'no correct candidate')}"
    text = f"{row.get('comparison', '?'):9} {row.get('eager_ms', 0):9.4g} -> {row['ours_ms']:9.4g} ms  {row.get('speedup_eager', 0):6.2f}x"
    export = f"export {row['export_ms']:.4g} ms" if row.get('export_ms') else f"EXPORT BAD: {row.get('export_failure')}"
    return f"{text}  {row['wall_s']:5.1f} s  {export}"
