# SPDX-License-Identifier: Apache-2.0
"""`python -m mtmc_reference.bytecode FILE`: imports what a problem needs, so that Python keeps it
compiled, and makes the file."""

import pathlib
import sys
import tempfile

from .rehearsal import rehearse


def main():
    with tempfile.TemporaryDirectory() as scratch:
        is_well = rehearse(scratch, "cpu")
    if is_well:
        pathlib.Path(sys.argv[1]).touch()
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
