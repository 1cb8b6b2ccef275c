// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"

namespace mtmc::client {

// Makes Ctrl-C and SIGTERM a question that the program asks, instead of its end. A
// second one ends the process at once. Call once, before threads are started.
void CatchInterrupts();

// Whether one has arrived. Thread-safe.
bool Interrupted();

// Blocks until one arrives or `timeout` has passed; true in the first case.
// REQUIRES: CatchInterrupts was called.
bool WaitForInterrupt(absl::Duration timeout);

}  // namespace mtmc::client
