// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace mtmc::daemon {

// Executes the program of this process anew, with its arguments and environment: the process id
// stays, its threads end wherever they are, its files close, and its children get the signal of
// their parent's death. As after a kill, what counts must be in a store. Ends the process, for
// its supervisor to start it, where that cannot be done. Thread-safe.
[[noreturn]] void RestartProcess();

}  // namespace mtmc::daemon
