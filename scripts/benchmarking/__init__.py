# SPDX-License-Identifier: Apache-2.0
"""What the benchmark scripts share. Plain Python 3.11 with the standard library;
only `harness` needs PyTorch, and it runs in a process of its own."""
