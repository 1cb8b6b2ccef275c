# SPDX-License-Identifier: Apache-2.0
"""The local stack and its command line, as a benchmark drives them."""

import json
import os
import pathlib
import signal
import subprocess
import time

# Exit codes of `mtmc` that a benchmark tells apart (docs/errors.md).
EXIT_OK = 0
EXIT_JOB_FAILED = 3
EXIT_WAIT_TIMEOUT = 124


class StackError(Exception):
    """The stack does not serve; the message holds the end of its log."""


class CommandError(Exception):
    """A command of `mtmc` failed; the message is what it said."""

    def __init__(self, message, exit_code):
        super().__init__(message)
        self.exit_code = exit_code


class Stack:
    """`mtmc up` with a data folder and a runtime folder of its own, so that a
    benchmark neither sees nor disturbs what else runs on the host."""

    START_SECONDS = 180

    def __init__(self, program, folder, device, python):
        self._program = str(program)
        self._folder = pathlib.Path(folder)
        self._device = device
        self._environment = dict(os.environ, MTMC_PYTHON=str(python), NO_COLOR='1',
                                 MTMC_RUNTIME_DIR=str(self._folder / 'run'),
                                 MTMC_CACHE_DIR=str(self._folder / 'cache'))
        self._environment.pop('MTMC_ENDPOINT', None)
        self._process = None
        self._endpoint = None
        self.log = self._folder / 'up.log'

    def start(self):
        """Blocks until the coordinator serves and its worker is there."""
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / 'run' / 'stack.json'
        file.parent.mkdir(mode=0o700, exist_ok=True)
        # Of a stack that was killed: it would be taken for this one's.
        file.unlink(missing_ok=True)
        with open(self.log, 'ab') as log:
            self._process = subprocess.Popen(
                [self._program, 'up', '--listen', '127.0.0.1:0', '--data-dir',
                 str(self._folder / 'data'), '--device', self._device],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment,
                start_new_session=True)
        deadline = time.monotonic() + self.START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise StackError(f'mtmc up ended with {self._process.returncode}: {self._log_tail()}')
            if file.exists():
                self._endpoint = json.loads(file.read_text())['endpoint']
                return
            time.sleep(0.05)
        self.stop()
        raise StackError(f'mtmc up did not serve within {self.START_SECONDS} s: {self._log_tail()}')

    def is_running(self):
        return self._process is not None and self._process.poll() is None

    def obituary(self):
        """Why a stack that ran does so no more."""
        return f'mtmc up ended with {self._process.returncode}: {last_line(self._log_tail())}'

    def stop(self):
        """Asks the stack to end, and ends its process group after 30 s."""
        if self._process is None:
            return
        if self.is_running():
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
        self._process = None

    def run(self, *arguments, timeout=60, accepts=(EXIT_OK,)):
        """Standard output of one command."""
        try:
            result = subprocess.run(
                [self._program, '--endpoint', self._endpoint, *map(str, arguments)],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, env=self._environment,
                timeout=timeout)
        except subprocess.TimeoutExpired:
            raise CommandError(f'mtmc {arguments[0]} did not end within {timeout:.0f} s',
                               EXIT_WAIT_TIMEOUT) from None
        if result.returncode not in accepts:
            raise CommandError(last_line(result.stderr) or f'exit code {result.returncode}',
                               result.returncode)
        return result.stdout

    def run_json(self, *arguments, **options):
        return json.loads(self.run('--output', 'json', *arguments, **options))

    def run_job(self, path, seconds, *options):
        """(job, its candidates) of a problem, once the job of at most so many seconds has ended."""
        created = self.run_json('jobs', 'create', path, '--minutes', seconds / 60, *options)
        name = created['name'].rsplit('/', 1)[-1]
        try:
            # The job keeps its own time; the wait only guards against a lost one.
            job = self.run_json('jobs', 'watch', name, '--timeout', seconds + 60, timeout=seconds + 90,
                                accepts=(EXIT_OK, EXIT_JOB_FAILED))
        except CommandError:
            self.run('jobs', 'cancel', name)
            raise
        return job, self.run_json('candidates', 'list', name).get('candidates', [])

    def _log_tail(self):
        return self.log.read_text(errors='replace')[-1500:]


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ''
