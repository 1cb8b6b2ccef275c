// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace mtmc::search {

// A vendor operator that a candidate may call, and why it is safe to allow.
struct LibraryCall {
  const char* op;
  const char* reason;
};

// The allow-list of `call` for jobs with `allow_library`. Every entry computes
// new tensors from its arguments and nothing else: no operator here reads a
// file, keeps state between calls, sees memory it was not given, or returns
// what was not computed. Operators in which the libraries of a vendor beat a
// generated kernel, or that the built-in engine cannot print, are worth an
// entry.
std::span<const LibraryCall> LibraryCalls();

}  // namespace mtmc::search
