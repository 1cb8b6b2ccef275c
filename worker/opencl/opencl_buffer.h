// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "worker/device/buffer.h"
#include "worker/device/random_fill.h"
#include "worker/opencl/opencl_context.h"

namespace mtmc::worker {

// A tensor in OpenCL memory. On a device that works on host memory the buffer
// is a 4 KiB aligned host allocation used in place, so that it has an address.
class OpenClBuffer final : public Buffer {
 public:
  static Outcome<std::unique_ptr<OpenClBuffer>> Allocate(
      std::shared_ptr<const OpenClContext> context, int64_t bytes);

  // A view of host memory. REQUIRES: `context.is_host()`.
  static Outcome<std::unique_ptr<OpenClBuffer>> Wrap(std::shared_ptr<const OpenClContext> context,
                                                     void* address, int64_t bytes);

  ~OpenClBuffer() override;

  // What a kernel takes: the tensor without its redzones.
  cl_mem memory() const { return tensor_; }

  void* address() const override;
  MaybeFailure Fill(uint8_t value) override;
  MaybeFailure Upload(std::span<const std::byte> data) override;
  MaybeFailure Download(std::span<std::byte> data) const override;
  MaybeFailure CopyFrom(const Buffer& source) override;
  MaybeFailure CopyFrom(const PeerMemory& source) override;
  std::optional<PeerMemory> Share() const override;

  // The buffer with nothing to do yet.
  RandomFill Describe() const;
  // Does what `fill`, which was made by Describe, says; how many words were wrong.
  Outcome<uint64_t> Apply(RandomFill fill) const;
  // 64 bits that differ when the tensor's bytes differ.
  Outcome<uint64_t> Checksum() const;

 private:
  OpenClBuffer(std::shared_ptr<const OpenClContext> context, int64_t bytes, int64_t total_bytes);

  const std::shared_ptr<const OpenClContext> context_;
  // With redzones and padding; 0 for a view.
  const int64_t total_bytes_;
  // Owned allocation of a host device, otherwise null.
  std::byte* allocation_ = nullptr;
  // First byte of the tensor in host memory; null on other devices.
  std::byte* host_ = nullptr;
  // With the redzones; null where the host's memory is used.
  cl_mem whole_ = nullptr;
  cl_mem tensor_ = nullptr;
};

}  // namespace mtmc::worker
