// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace mtmc::fault {

// What a child process does wrong, and at which request. As text `MOMENT ACT`,
// such as `execute crash`.
struct Fault {
  enum class Act {
    kHang,         // sleeps for ever
    kSpin,         // computes for ever
    kStop,         // stops itself, as SIGSTOP does
    kFork,         // fills its group with processes, then hangs
    kCrash,        // SIGSEGV
    kExit,         // exits
    kKill,         // SIGKILL, as an operator or the kernel would
    kFlood,        // prints megabytes, then goes on
    kFloodCrash,   // prints megabytes and a last line, then crashes
    kGarbage,      // writes what is no message into the channel
    kMute,         // closes the channel and goes on
    kMemory,       // takes memory without end
    kContextLost,  // says that the device's context is broken
  };

  // Name of the request's field in the protocol: `build`, `load`, `execute`, ...
  std::string moment;
  Act act = Act::kHang;
};

std::string ToText(const Fault& fault);

// The fault that `text` names behind `// fault:`, or alone; absent when it names none.
std::optional<Fault> FindFault(const std::string& text);

// Does it. Returns after kFlood and kContextLost only.
void Commit(Fault::Act act);

}  // namespace mtmc::fault
