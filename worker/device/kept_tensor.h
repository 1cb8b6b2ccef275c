// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>

#include "kernel/program/program.h"
#include "worker/device/device.h"

namespace mtmc::worker {

// An input's bytes on the device, which programs may only read.
struct KeptTensor {
  std::unique_ptr<Buffer> buffer;
  uint64_t checksum = 0;
};

// Where an input's bytes come from: this process's memory, another's device
// memory, or what was kept on this device.
using InputSource =
    std::variant<std::span<const std::byte>, PeerMemory, std::shared_ptr<const KeptTensor>>;

// By name.
using InputSources = std::map<std::string, InputSource, std::less<>>;

// What was kept; null where the source is another.
std::shared_ptr<const KeptTensor> KeptOf(const InputSource& source);

// Whether a program may only read the tensor.
bool IsReadOnly(const kernel::Tensor& tensor);

// Brings an input's bytes into `buffer`. Enqueued, finished, or kCheck when sizes
// differ.
MaybeFailure CopyInput(const kernel::Tensor& tensor, const InputSource& source, Buffer& buffer);

// A copy in new memory, whose checksum the caller has to find.
Outcome<std::shared_ptr<KeptTensor>> CopyToKeep(Device& device, const kernel::Tensor& tensor,
                                                const InputSource& source);

// What tells whether a kept tensor and its redzones are as they were.
BufferScan AboutKept(const KeptTensor& kept);

// Whether the answer to AboutKept says so.
bool IsIntact(const KeptTensor& kept, const BufferScan& answer);

}  // namespace mtmc::worker
