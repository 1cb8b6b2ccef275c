# SPDX-License-Identifier: Apache-2.0
"""The processes of a world: each can be killed, stopped and started again, and one that
ends by itself is started again by a keeper, as systemd would."""

import os
import signal
import subprocess
import threading
import time

import processes


class Part:
    """One process in a group of its own. `command` and `variables` are the same each time."""

    def __init__(self, name, command, log, variables, user=()):
        self.name = name
        self._command = [*user, *map(str, command)]
        self._log = log
        self._variables = variables
        self._lock = threading.RLock()
        self._process = None
        self._is_expected = True
        # The keeper leaves it alone meanwhile.
        self.is_down = True
        # How it ended by itself: exit codes, negative for signals.
        self.exits = []

    def start(self):
        with self._lock:
            self.is_down = False
            if self._process is not None and self._process.poll() is None:
                return
            self._is_expected = False
            with open(self._log, "ab") as log:
                self._process = subprocess.Popen(
                    self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._variables,
                )  # fmt: skip

    @property
    def pid(self):
        """None while it does not run."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def send(self, number):
        """A signal to it; whether it was there."""
        with self._lock:
            if self.pid is None:
                return False
            self._process.send_signal(number)
            return True

    def take_down(self, number=signal.SIGKILL, seconds=20):
        """Ends it by a signal and leaves it so; whether it was there."""
        with self._lock:
            self.is_down = self._is_expected = True
            if self.pid is None:
                return False
            # A stopped process hears no SIGTERM.
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(number)
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.exits.append("does not end")
                self._process.kill()
                self._process.wait()
            return True

    def tend(self):
        """Starts it again if it has ended without being asked to."""
        with self._lock:
            if self.is_down or self._process is None or self._process.poll() is None:
                return
            if not self._is_expected:
                self.exits.append(self._process.returncode)
            self.start()

    def descendant(self, name, random):
        """The pid of one of its descendants with that program's name, or None."""
        found = [process.pid for process in processes.descendants(self.pid) if process.name == name] if self.pid else []
        return random.choice(found) if found else None


class Keeper:
    """Tends parts until it is closed."""

    def __init__(self, parts):
        self._parts = parts
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._is_over.wait(0.5):
            for part in self._parts:
                part.tend()

    def close(self):
        self._is_over.set()
        self._thread.join()


def kill_quietly(pid):
    """Whether there was such a process."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def pause_process(part, seconds):
    """Stands still for that long."""
    was_there = part.send(signal.SIGSTOP)
    time.sleep(seconds)
    part.send(signal.SIGCONT)
    return was_there
