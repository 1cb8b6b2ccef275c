// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace mtmc::rpc {

// Keeps the threads on which gRPC calls back until the process ends.
//
// They end with the last channel or server. That may be a channel whose last reference is of
// a call, in an object that a callback deletes; the thread that runs it then waits for itself,
// and goes on with a queue that is gone: the process aborts, in one of some hundred runs
// (gRPC 1.51). Called by whatever makes a channel or a server; thread-safe.
void KeepCallbackThreads();

}  // namespace mtmc::rpc
