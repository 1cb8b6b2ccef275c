// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cuda_buffer.h"

#include <utility>

#include "common/base/check.h"

namespace mtmc::worker {
namespace {

// The driver hands out pages of this size; smaller requests share one, and with
// it what another process can see.
constexpr int64_t kPageBytes = int64_t{2} << 20;

CUdeviceptr ToPointer(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

}  // namespace

CudaBuffer::CudaBuffer(std::shared_ptr<const CudaContext> context, CUdeviceptr address,
                       int64_t bytes)
    : Buffer(bytes), context_(std::move(context)), tensor_(address) {}

CudaBuffer::~CudaBuffer() {
  if (allocation_) memory_->Free(allocation_, TotalBytes());
}

Outcome<std::unique_ptr<Buffer>> CudaBuffer::Allocate(std::shared_ptr<const CudaContext> context,
                                                      std::shared_ptr<CudaMemory> memory,
                                                      int64_t bytes) {
  const int64_t total = (bytes + 2 * kRedzoneBytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  auto allocation = memory->Allocate(total);
  if (!allocation.ok()) return allocation.failure();
  auto buffer = std::make_unique<CudaBuffer>(
      std::move(context), *allocation + static_cast<CUdeviceptr>(kRedzoneBytes), bytes);
  buffer->memory_ = std::move(memory);
  buffer->allocation_ = *allocation;
  buffer->slack_bytes_ = static_cast<size_t>(total - bytes - 2 * kRedzoneBytes);
  return std::unique_ptr<Buffer>(std::move(buffer));
}

int64_t CudaBuffer::TotalBytes() const {
  return bytes() + 2 * kRedzoneBytes + static_cast<int64_t>(slack_bytes_);
}

MaybeFailure CudaBuffer::Enqueued(CUresult error, const char* call) const {
  if (error != CUDA_SUCCESS) return CudaFailure(context_->api(), error, call);
  return std::nullopt;
}

MaybeFailure CudaBuffer::Finish(CUresult error, const char* call) const {
  if (MaybeFailure failure = Enqueued(error, call)) return failure;
  return context_->Synchronize();
}

void* CudaBuffer::address() const {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's addresses are integers.
  return reinterpret_cast<void*>(tensor_);
}

MaybeFailure CudaBuffer::Fill(uint8_t value) {
  if (bytes() == 0) return std::nullopt;
  return Enqueued(context_->api().cuMemsetD8Async(tensor_, value, static_cast<size_t>(bytes()),
                                                  context_->stream()),
                  "cuMemsetD8Async");
}

MaybeFailure CudaBuffer::Upload(std::span<const std::byte> data) {
  MTMC_CHECK(data.size() == static_cast<size_t>(bytes()));
  if (data.empty()) return std::nullopt;
  return Finish(
      context_->api().cuMemcpyHtoDAsync(tensor_, data.data(), data.size(), context_->stream()),
      "cuMemcpyHtoDAsync");
}

MaybeFailure CudaBuffer::Download(std::span<std::byte> data) const {
  MTMC_CHECK(data.size() == static_cast<size_t>(bytes()));
  if (data.empty()) return std::nullopt;
  return Finish(
      context_->api().cuMemcpyDtoHAsync(data.data(), tensor_, data.size(), context_->stream()),
      "cuMemcpyDtoHAsync");
}

MaybeFailure CudaBuffer::CopyFrom(const Buffer& source) {
  MTMC_CHECK(source.bytes() == bytes());
  if (bytes() == 0) return std::nullopt;
  return Enqueued(
      context_->api().cuMemcpyDtoDAsync(tensor_, ToPointer(source.address()),
                                        static_cast<size_t>(bytes()), context_->stream()),
      "cuMemcpyDtoDAsync");
}

MaybeFailure CudaBuffer::CopyFrom(const PeerMemory& source) {
  if (bytes() == 0) return std::nullopt;
  const Outcome<CUdeviceptr> peer = context_->peers().Open(source.handle);
  if (!peer.ok()) return peer.failure();
  return Finish(context_->api().cuMemcpyDtoDAsync(
                    tensor_, *peer + static_cast<CUdeviceptr>(source.offset_bytes),
                    static_cast<size_t>(bytes()), context_->stream()),
                "a copy from another process");
}

std::optional<PeerMemory> CudaBuffer::Share() const {
  if (!allocation_) return std::nullopt;
  CUipcMemHandle handle{};
  // Refused on hosts whose containers forbid it; files are used there.
  if (context_->api().cuIpcGetMemHandle(&handle, allocation_) != CUDA_SUCCESS) return std::nullopt;
  return PeerMemory{.handle = std::string(handle.reserved, sizeof handle.reserved),
                    .offset_bytes = static_cast<int64_t>(tensor_ - allocation_)};
}

// Up to the ends of the pages: results could be hidden there.
RandomFill CudaBuffer::Describe() const {
  if (!allocation_) return DescribeView(tensor_, bytes());
  return DescribeAllocation(allocation_, TotalBytes(), kRedzoneBytes, bytes());
}

CudaScan::Question CudaBuffer::AboutTensor() const {
  return {.kind = CudaScan::Question::Kind::kChecksum, .address = tensor_, .bytes = bytes()};
}

}  // namespace mtmc::worker
