// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace mtmc::worker {

// What a module's PTX does with its variables in global memory, which all launches
// share.
struct PtxVariables {
  // Those that are declared, wherever.
  std::set<std::string, std::less<>> declared;
  // One that something else than a load may reach, with the statement; empty where
  // there is none.
  std::string written;
  std::string statement;
};

// A variable of global memory is a constant if no instruction can write it. Nothing
// marks it so in a cubin, whose module memory the driver maps writable, and a cast
// removes every `const` of the source; so the proof is sought in the PTX, where each
// use of an address still has a name:
//   1. the address of a variable enters a register by `mov` or `cvta` of its name;
//   2. it moves on by `mov`, `cvta`, `selp`, and by `add`, `sub` and `mad` with
//      something that is no such address, so that it stays a variable plus an offset;
//   3. it ends in the brackets of an `ld`.
// Any other mention of a variable or of such a register counts as a write: stores,
// atomics, calls, comparisons (by which the bits of an address would leave as data),
// other variables' initial values, and whatever this scan does not know. Registers
// are told apart by name alone, and an order of statements is not assumed.
//
// Tables that are `static constexpr`, strings and the coefficients of the mathematical
// functions pass. A program that guesses an address is not caught; it could as well
// write anywhere else (docs/verification.md). Any bytes may be given; what cannot be
// read counts as a write, too.
PtxVariables ScanPtx(std::string_view ptx);

}  // namespace mtmc::worker
