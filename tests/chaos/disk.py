# SPDX-License-Identifier: Apache-2.0
"""A small disk of its own for a part that writes, which can be filled to its last byte."""

import os
import pathlib
import subprocess


class Disk:
    """`folder` is there in any case; `reason` says why it is no disk of its own."""

    def __init__(self, folder, megabytes):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.reason = ""
        if os.getuid() != 0:
            self.reason = "only root mounts a small disk"
            return
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=1777", "chaos", self.folder],
                              capture_output=True, text=True, check=False)  # fmt: skip
        if done.returncode != 0:
            self.reason = f"no small disk: {done.stderr.strip()}"

    @property
    def _ballast(self):
        return self.folder / "ballast"

    def fill(self):
        """Leaves no byte to anybody."""
        with open(self._ballast, "wb", buffering=0) as file:
            try:
                for size in (1 << 20, 4096):
                    while file.write(b"\0" * size) == size:
                        pass
            except OSError:
                pass

    def free(self):
        self._ballast.unlink(missing_ok=True)

    def close(self):
        if not self.reason:
            subprocess.run(["umount", "-l", self.folder], check=False)
