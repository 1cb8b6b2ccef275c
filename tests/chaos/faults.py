# SPDX-License-Identifier: Apache-2.0
"""Does what a plan says to a world. Each fault has a thread, which ends what it began."""

import random
import signal
import threading
import time

import parts


class Faults:
    """`done` has (fault, outcome) of all that were begun; an outcome is "hit", "missed" where
    there was nothing to hit, or why it was left out."""

    def __init__(self, world, workers, seed):
        self._world = world
        self._workers = workers
        self._random = random.Random(f"{seed}/faults")
        self.done = []
        self._threads = []

    def run(self, plan, tell):
        """All faults of a plan, in their time. Returns once each has ended."""
        begin = time.monotonic()
        for fault in plan:
            time.sleep(max(0, begin + fault.start - time.monotonic()))
            thread = threading.Thread(target=self._do, args=(fault, tell), daemon=True)
            thread.start()
            self._threads.append(thread)
        for thread in self._threads:
            thread.join(60)

    def _do(self, fault, tell):
        try:
            outcome = self._strike(fault)
        except OSError as error:
            outcome = f"not possible: {error}"
        outcome = {True: "hit", False: "missed", None: "hit"}.get(outcome, outcome)
        self.done.append((fault, outcome))
        tell(fault, outcome)

    def _strike(self, fault):
        """Whether it met anything; or why it was skipped."""
        kind, target = fault.kind, fault.target
        if kind in self._world.skipped:
            return f"skipped: {self._world.skipped[kind]}"
        if kind in ("kill coordinator", "kill helper", "kill real worker"):
            return self._restart(target, signal.SIGKILL, fault.seconds)
        if kind == "terminate coordinator":
            return self._restart(target, signal.SIGTERM, fault.seconds)
        if kind in ("stop coordinator", "stop helper", "stop real worker"):
            return parts.pause_process(self._world.parts[target], fault.seconds)
        if kind == "kill child of worker":
            pid = self._world.parts["worker"].descendant(target, self._random)
            return pid is not None and parts.kill_quietly(pid)
        if kind == "kill simulated worker":
            return self._workers[int(target[4:])].kill()
        if kind == "stall simulated worker":
            return self._workers[int(target[4:])].stall(fault.seconds)
        if kind == "network":
            return self._trouble(fault)
        if kind == "postgres fast restart":
            return self._restart("postgres", signal.SIGINT, fault.seconds)
        if kind == "postgres immediate restart":
            return self._restart("postgres", signal.SIGQUIT, fault.seconds)
        if kind == "s3 refuses":
            return self._restart("s3", signal.SIGKILL, fault.seconds)
        if kind == "disk full":
            return self._fill(fault)
        return self._jump(fault)

    def _restart(self, name, number, seconds):
        part = self._world.parts[name]
        was_there = part.take_down(number)
        time.sleep(seconds)
        part.start()
        return was_there

    def _trouble(self, fault):
        self._world.links.set(fault.target, fault.mode, fault.value)
        time.sleep(fault.seconds)
        self._world.links.set(fault.target, "ok")

    def _fill(self, fault):
        disk = self._world.disks[fault.target]
        disk.fill()
        time.sleep(fault.seconds)
        disk.free()

    def _jump(self, fault):
        self._world.set_clock(fault.target, int(fault.value))
        time.sleep(fault.seconds)
        self._world.set_clock(fault.target, 0)
