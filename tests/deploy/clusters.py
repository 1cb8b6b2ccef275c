# SPDX-License-Identifier: Apache-2.0
"""Which platforms are installed for real: those named in MTMC_CLUSTERS, separated by commas.

Each takes minutes. A script of its own runs it, and CI one that it draws by the commit.
"""

import os


def not_chosen(name, script):
    """Why the platform `name` is not to be installed; empty when it is."""
    if name in os.environ.get("MTMC_CLUSTERS", "").split(","):
        return ""
    return f"MTMC_CLUSTERS does not name {name}; {script} does"
