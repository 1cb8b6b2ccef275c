// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "kernel/program/program.h"
#include "worker/device/device.h"
#include "worker/device/kept_tensor.h"

namespace mtmc::worker {

// Sets of inputs that lie on the device under numbers, so that executions can take
// turns on them. Tensors that are equal in several sets, such as weights, are
// held once, and those that somebody else keeps are not copied. Thread-compatible; must not outlive
// the device.
class InputStore {
 public:
  // `limit_bytes` bounds the memory of all sets together.
  InputStore(Device& device, int64_t limit_bytes);

  // Replaces the set of that number by the inputs that `program` declares. False
  // when there is no memory for it: a device that is full is no one's fault.
  Outcome<bool> Keep(int64_t id, const kernel::Program& program, const InputSources& inputs);

  // Null when there is none.
  const InputSources* Find(int64_t id) const;

  // kOutOfBounds when a kept tensor or a redzone around it was written: programs may only
  // read them. Reads all of them.
  MaybeFailure Check() const;

  // Whether no program has executed on the set since it was kept.
  bool IsUnseen(int64_t id) const;
  void MarkSeen(int64_t id);

  // The set that was marked last; 0 before the first.
  int64_t last_seen() const { return last_seen_; }

  void Clear();

 private:
  struct Set {
    InputSources tensors;
    bool is_unseen = true;
  };

  std::shared_ptr<const KeptTensor> FindEqual(const std::string& name,
                                              const KeptTensor& tensor) const;
  bool IsInAnySet(const std::string& name) const;
  // Each once, with a name that it goes by.
  std::map<const KeptTensor*, std::string> Tensors() const;
  int64_t UsedBytes() const;

  Device& device_;
  const int64_t limit_bytes_;
  std::map<int64_t, Set> sets_;
  int64_t last_seen_ = 0;
};

}  // namespace mtmc::worker
