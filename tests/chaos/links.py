# SPDX-License-Identifier: Apache-2.0
"""The proxy process, as its owner sees it."""

import json
import pathlib
import subprocess
import sys
import threading


class Links:
    """Thread-safe. Ends with `close`."""

    def __init__(self, log):
        self.ports = {}
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, pathlib.Path(__file__).with_name("proxy.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip

    def _order(self, **order):
        with self._lock:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())

    def add(self, name, upstream):
        """A new link to a port of this host; its own port."""
        self.ports[name] = self._order(link=name, port=0, upstream=upstream)["port"]
        return self.ports[name]

    def set(self, name, mode, value=0.0):
        self._order(link=name, mode=mode, value=value)

    def mend(self):
        for name in self.ports:
            self.set(name, "ok")

    def close(self):
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()
