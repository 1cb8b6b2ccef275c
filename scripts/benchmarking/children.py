# SPDX-License-Identifier: Apache-2.0
"""Functions in forks of this process, alone or in turns. POSIX; one thread calls."""

import ctypes
import json
import os
import signal
import traceback

# Of Linux: the signal that a process gets when its parent ends.
PR_SET_PDEATHSIG = 1
_GO = b'.'


def in_child(function, *arguments):
    """What the function returns in a fork of this process, or the failure of it."""
    return _Child(function, arguments).answer()


def in_turns(timers, rounds):
    """What generators return, each in a fork of its own, in their order.

    `timers` are (function, arguments); the function yields after each of its `rounds`. Nobody
    works while another does, and the order is turned around each round: what the device's clocks
    do meanwhile, they do to all. Failures are answers, and the others go on without.
    """
    children = [_TurningChild(function, arguments, rounds) for function, arguments in timers]
    for number in range(rounds):
        for child in children[::-1] if number % 2 else children:
            child.take_turn()
    return [child.answer() for child in children]


class _Child:
    """A fork that calls a function, and answers with what it returns."""

    def __init__(self, function, arguments):
        self._answer, write = os.pipe()
        parent = os.getpid()
        self._id = os.fork()
        if self._id == 0:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)
            self._in_child()
            try:
                answer = function(*arguments)
            except BaseException as error:  # Any failure of user code is an answer, its exit as well.
                answer = {'ok': False, 'failure': f'{type(error).__name__}: {error}'[:500],
                          'traceback': traceback.format_exc()[-2000:]}
            os.write(write, json.dumps(answer).encode())
            os._exit(0)
        os.close(write)

    def _in_child(self):
        """Called in the child before its function."""

    def answer(self):
        """Waits for it."""
        with open(self._answer, 'rb') as pipe:
            answer = pipe.read()
        _, status = os.waitpid(self._id, 0)
        if not answer:
            return {'ok': False, 'failure': f'the check died with {os.waitstatus_to_exitcode(status)}'}
        return json.loads(answer)


class _TurningChild(_Child):
    """A fork that goes through a generator, a step each turn."""

    def __init__(self, function, arguments, rounds):
        self._go, self._done = os.pipe(), os.pipe()

        def steps():
            generator = function(*arguments)
            for _ in range(rounds):
                if os.read(self._go[0], 1) != _GO:
                    os._exit(1)
                if next(generator, self) is self:
                    break
                os.write(self._done[1], _GO)
            else:
                try:
                    next(generator)
                except StopIteration as end:
                    return end.value
            raise RuntimeError('the timer has other rounds than turns')

        super().__init__(steps, ())
        os.close(self._go[0])
        os.close(self._done[1])

    def _in_child(self):
        os.close(self._go[1])
        os.close(self._done[0])

    def take_turn(self):
        """Lets it take a step and waits for the end of that, or of the child."""
        try:
            os.write(self._go[1], _GO)
        except BrokenPipeError:
            return
        os.read(self._done[0], 1)

    def answer(self):
        answer = super().answer()
        os.close(self._go[1])
        os.close(self._done[0])
        return answer
