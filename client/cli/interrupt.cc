// SPDX-License-Identifier: Apache-2.0
#include "client/cli/interrupt.h"

#include <optional>

#include "absl/time/clock.h"
#include "common/base/shutdown_signal.h"

namespace mtmc::client {
namespace {

std::optional<base::ShutdownSignal>& Signal() {
  static std::optional<base::ShutdownSignal> signal;
  return signal;
}

}  // namespace

void CatchInterrupts() { Signal().emplace(); }

bool Interrupted() { return Signal() && Signal()->token().stop_requested(); }

bool WaitForInterrupt(absl::Duration timeout) { return Signal()->WaitUntil(absl::Now() + timeout); }

}  // namespace mtmc::client
