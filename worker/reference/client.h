// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "worker/sandbox/confine.h"
#include "worker/verify/party.h"

namespace mtmc::worker {

// The daemon's end of the reference process: a warm Python interpreter with
// PyTorch that runs the user's file (`mtmc_reference`). One line of protobuf
// JSON per message.
//
// Starts the process at the first call and again after every death, and then
// repeats the last successful Load, so that a caller need not know of restarts
// between a Load and what follows. A process that has lost the device's context is dead,
// even if it still says so. A Load equal to the last one is answered from
// memory. Thread-compatible.
class ReferenceClient : public ReferenceParty {
 public:
  struct Options {
    // Interpreter that has PyTorch.
    std::string python;
    // Folder that holds the package `mtmc_reference`.
    std::string package_folder;
    // Private folder for shared tensors.
    std::string scratch;
    // Where the modules of PyTorch and ours lie compiled, read by the process; empty: beside
    // them.
    std::string bytecode_folder = {};
    // PyTorch's name of the device, on which a process that nobody waits for rehearses;
    // empty: it only imports PyTorch.
    std::string device = {};
    // Largest resident set of the process; 0 is no limit.
    int64_t max_resident_bytes = 0;
    // The rights of the process, borrowed and read at every start; null: those of
    // the daemon.
    const Confinement* confinement = nullptr;
    // Asked every 50 ms while a call waits; true kills the process.
    std::function<bool()> is_cancelled = [] { return false; };
  };

  explicit ReferenceClient(Options options);
  ~ReferenceClient() override;

  Reply<pipe::v1::ReferenceResponse> Call(const pipe::v1::ReferenceRequest& request,
                                          absl::Duration timeout) override;

  // Starts the process ahead of the first call, and lets it rehearse: importing PyTorch and
  // the first use of a device take seconds.
  void Warm();

  // Ends the process: the next one has the rights of then.
  void End();

  // Starts the process by which Rest() will replace the present one, so that it is warm
  // then. Only where there is a problem to give back.
  void PrepareRest();

  // Replaces a process that has a problem loaded by a warm one, to which the Load is
  // repeated when it is needed: nothing else gives back all that PyTorch and the user's
  // file keep, on the device and on the host.
  void Rest();

 private:
  class Process;

  Reply<pipe::v1::ReferenceResponse> Exchange(const pipe::v1::ReferenceRequest& request,
                                              absl::Time deadline);
  // Puts the spare in the place of the process, whether there is one or not.
  void UseSpare();
  bool EnsureProcess(Reply<pipe::v1::ReferenceResponse>& reply, bool rehearses);

  const Options options_;
  std::unique_ptr<Process> process_;
  // Has been asked nothing.
  std::unique_ptr<Process> spare_;
  // Whether the present process has answered load_.
  bool has_loaded_ = false;
  // The last Load that was answered without a failure, and its answer.
  std::unique_ptr<pipe::v1::ReferenceRequest> load_;
  std::unique_ptr<pipe::v1::ReferenceResponse> loaded_;
  int64_t sequence_ = 0;
};

}  // namespace mtmc::worker
