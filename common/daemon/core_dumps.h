// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace mtmc::daemon {

// A process that dies from now on leaves no picture of its memory, which has tokens, keys of
// language models and other people's programs; nor may others of its user read it while it
// lives. Children inherit the first and not the second. Not for a process that makes user
// namespaces: the worker has its own way (worker/sandbox).
void ForbidCoreDumps();

}  // namespace mtmc::daemon
