# SPDX-License-Identifier: Apache-2.0
"""The harness as a child process that is started again when it dies or hangs."""

import json
import pathlib
import select
import subprocess
import time


class HarnessProcess:
    def __init__(self, python, device, timing, log):
        """`log` takes what the harness and the problems print."""
        self._command = [str(python), str(pathlib.Path(__file__).with_name('harness.py')),
                         '--device', device]
        if timing:
            self._command += ['--timing', str(timing)]
        self._log = log
        self._process = None
        # What the harness said of itself: versions and device.
        self.description = {}

    def start(self):
        """Blocks until PyTorch is imported."""
        with open(self._log, 'ab') as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, stderr=log)
        self.description = self._read(120)
        if 'failure' in self.description:
            raise RuntimeError(f"the harness does not start: {self.description['failure']}; see {self._log}")

    def ask(self, request, timeout):
        """The answer, or {'ok': False, 'failure': why}."""
        if self._process is None:
            self.start()
        try:
            self._process.stdin.write(json.dumps(request).encode() + b'\n')
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # Told by the read that follows.
        return self._read(timeout)

    def stop(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process.stdin.close()
            self._process.stdout.close()
            self._process = None

    def _read(self, timeout):
        deadline = time.monotonic() + timeout
        line = b''
        while not line.endswith(b'\n'):
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not select.select([self._process.stdout], [], [], remaining)[0]:
                self.stop()
                return {'ok': False, 'failure': f'the check did not end within {timeout:.0f} s'}
            part = self._process.stdout.read1(65536)
            if not part:
                code = self._process.wait()
                self.stop()
                return {'ok': False, 'failure': f'the harness died with exit code {code}'}
            line += part
        return json.loads(line)
