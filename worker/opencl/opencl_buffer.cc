// SPDX-License-Identifier: Apache-2.0
#include "worker/opencl/opencl_buffer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "worker/device/checksum.h"

namespace mtmc::worker {
namespace {

// A page, so that huge tensors are placed as PyTorch's own large ones are.
constexpr size_t kHostAlignment = 4096;

// A cl_mem of zero bytes is not allowed; an empty tensor takes one line.
size_t AtLeastOneLine(int64_t bytes) { return static_cast<size_t>(std::max<int64_t>(bytes, 64)); }

uint64_t FillChunks(const RandomFill& fill) {
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < CountVisited(fill); ++i) wrong += FillChunk(fill, VisitedChunk(fill, i));
  return wrong;
}

}  // namespace

OpenClBuffer::OpenClBuffer(std::shared_ptr<const OpenClContext> context, int64_t bytes,
                           int64_t total_bytes)
    : Buffer(bytes), context_(std::move(context)), total_bytes_(total_bytes) {}

OpenClBuffer::~OpenClBuffer() {
  // A plan whose later step was refused may have an earlier one still running.
  if (allocation_) context_->api().clFinish(context_->queue());
  if (tensor_) context_->api().clReleaseMemObject(tensor_);
  if (whole_) context_->api().clReleaseMemObject(whole_);
  std::free(allocation_);
}

Outcome<std::unique_ptr<OpenClBuffer>> OpenClBuffer::Allocate(
    std::shared_ptr<const OpenClContext> context, int64_t bytes) {
  const OpenClApi& api = context->api();
  const size_t used = static_cast<size_t>(2 * kRedzoneBytes) + AtLeastOneLine(bytes);
  const size_t total = (used + kHostAlignment - 1) / kHostAlignment * kHostAlignment;
  std::unique_ptr<OpenClBuffer> buffer(
      new OpenClBuffer(std::move(context), bytes, static_cast<int64_t>(total)));
  cl_int error = CL_SUCCESS;
  if (buffer->context_->is_host()) {
    buffer->allocation_ = static_cast<std::byte*>(std::aligned_alloc(kHostAlignment, total));
    if (!buffer->allocation_) {
      return Failure{.kind = Failure::Kind::kOutOfMemory,
                     .message = absl::StrCat("no host memory for ", bytes, " bytes")};
    }
    buffer->host_ = buffer->allocation_ + kRedzoneBytes;
    buffer->tensor_ =
        api.clCreateBuffer(buffer->context_->context(), CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                           AtLeastOneLine(bytes), buffer->host_, &error);
    if (error != CL_SUCCESS) return OpenClFailure(error, "clCreateBuffer");
    return buffer;
  }
  buffer->whole_ =
      api.clCreateBuffer(buffer->context_->context(), CL_MEM_READ_WRITE, total, nullptr, &error);
  if (error != CL_SUCCESS) return OpenClFailure(error, "clCreateBuffer");
  const cl_buffer_region region{static_cast<size_t>(kRedzoneBytes), AtLeastOneLine(bytes)};
  buffer->tensor_ = api.clCreateSubBuffer(buffer->whole_, CL_MEM_READ_WRITE,
                                          CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
  if (error != CL_SUCCESS) return OpenClFailure(error, "clCreateSubBuffer");
  return buffer;
}

Outcome<std::unique_ptr<OpenClBuffer>> OpenClBuffer::Wrap(
    std::shared_ptr<const OpenClContext> context, void* address, int64_t bytes) {
  MTMC_CHECK(context->is_host());
  std::unique_ptr<OpenClBuffer> buffer(new OpenClBuffer(std::move(context), bytes, 0));
  // An empty tensor has no storage; any address will do for it.
  alignas(64) static std::byte nothing[64];
  buffer->host_ = bytes == 0 ? nothing : static_cast<std::byte*>(address);
  cl_int error = CL_SUCCESS;
  buffer->tensor_ = buffer->context_->api().clCreateBuffer(
      buffer->context_->context(), CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
      static_cast<size_t>(std::max<int64_t>(bytes, 1)), buffer->host_, &error);
  if (error != CL_SUCCESS) return OpenClFailure(error, "clCreateBuffer");
  return buffer;
}

void* OpenClBuffer::address() const { return host_; }

MaybeFailure OpenClBuffer::Fill(uint8_t value) {
  if (bytes() == 0) return std::nullopt;
  const OpenClApi& api = context_->api();
  cl_int error = api.clFinish(context_->queue());
  if (error != CL_SUCCESS) return OpenClFailure(error, "clFinish");
  const auto size = static_cast<size_t>(bytes());
  if (host_) {
    std::memset(host_, value, size);
    return std::nullopt;
  }
  error =
      api.clEnqueueFillBuffer(context_->queue(), tensor_, &value, 1, 0, size, 0, nullptr, nullptr);
  if (error == CL_SUCCESS) error = api.clFinish(context_->queue());
  if (error != CL_SUCCESS) return OpenClFailure(error, "clEnqueueFillBuffer");
  return std::nullopt;
}

RandomFill OpenClBuffer::Describe() const {
  if (total_bytes_ == 0) return DescribeView(reinterpret_cast<uintptr_t>(host_), bytes());
  return DescribeAllocation(reinterpret_cast<uintptr_t>(allocation_), total_bytes_, kRedzoneBytes,
                            bytes());
}

Outcome<uint64_t> OpenClBuffer::Apply(RandomFill fill) const {
  const OpenClApi& api = context_->api();
  cl_int error = api.clFinish(context_->queue());
  if (error != CL_SUCCESS) return OpenClFailure(error, "clFinish");
  if (host_) return FillChunks(fill);
  std::vector<RandomChunk> copy(fill.num_chunks);
  const size_t size = copy.size() * sizeof copy[0];
  error = api.clEnqueueReadBuffer(context_->queue(), whole_, CL_TRUE, 0, size, copy.data(), 0,
                                  nullptr, nullptr);
  if (error != CL_SUCCESS) return OpenClFailure(error, "clEnqueueReadBuffer");
  fill.chunks = copy.data();
  const uint64_t wrong = FillChunks(fill);
  if (fill.fills_tensor || fill.fills_around) {
    error = api.clEnqueueWriteBuffer(context_->queue(), whole_, CL_TRUE, 0, size, copy.data(), 0,
                                     nullptr, nullptr);
    if (error != CL_SUCCESS) return OpenClFailure(error, "clEnqueueWriteBuffer");
  }
  return wrong;
}

MaybeFailure OpenClBuffer::Upload(std::span<const std::byte> data) {
  MTMC_CHECK(data.size() == static_cast<size_t>(bytes()));
  if (data.empty()) return std::nullopt;
  if (host_) {
    std::memcpy(host_, data.data(), data.size());
    return std::nullopt;
  }
  const cl_int error = context_->api().clEnqueueWriteBuffer(
      context_->queue(), tensor_, CL_TRUE, 0, data.size(), data.data(), 0, nullptr, nullptr);
  if (error != CL_SUCCESS) return OpenClFailure(error, "clEnqueueWriteBuffer");
  return std::nullopt;
}

MaybeFailure OpenClBuffer::Download(std::span<std::byte> data) const {
  MTMC_CHECK(data.size() == static_cast<size_t>(bytes()));
  if (data.empty()) return std::nullopt;
  const OpenClApi& api = context_->api();
  cl_int error = api.clFinish(context_->queue());
  if (error == CL_SUCCESS && host_) {
    std::memcpy(data.data(), host_, data.size());
    return std::nullopt;
  }
  if (error == CL_SUCCESS) {
    error = api.clEnqueueReadBuffer(context_->queue(), tensor_, CL_TRUE, 0, data.size(),
                                    data.data(), 0, nullptr, nullptr);
  }
  if (error != CL_SUCCESS) return OpenClFailure(error, "clEnqueueReadBuffer");
  return std::nullopt;
}

MaybeFailure OpenClBuffer::CopyFrom(const Buffer& source) {
  MTMC_CHECK(source.bytes() == bytes());
  if (bytes() == 0) return std::nullopt;
  const OpenClApi& api = context_->api();
  const auto& other = static_cast<const OpenClBuffer&>(source);
  cl_int error = api.clFinish(context_->queue());
  if (error == CL_SUCCESS && host_) {
    std::memcpy(host_, other.host_, static_cast<size_t>(bytes()));
    return std::nullopt;
  }
  if (error == CL_SUCCESS) {
    error = api.clEnqueueCopyBuffer(context_->queue(), other.tensor_, tensor_, 0, 0,
                                    static_cast<size_t>(bytes()), 0, nullptr, nullptr);
  }
  if (error == CL_SUCCESS) error = api.clFinish(context_->queue());
  if (error != CL_SUCCESS) return OpenClFailure(error, "clEnqueueCopyBuffer");
  return std::nullopt;
}

MaybeFailure OpenClBuffer::CopyFrom(const PeerMemory&) {
  return Failure{.kind = Failure::Kind::kCheck,
                 .message = "OpenCL memory cannot come from another process"};
}

std::optional<PeerMemory> OpenClBuffer::Share() const { return std::nullopt; }

Outcome<uint64_t> OpenClBuffer::Checksum() const {
  if (host_) {
    const cl_int error = context_->api().clFinish(context_->queue());
    if (error != CL_SUCCESS) return OpenClFailure(error, "clFinish");
    return HostChecksum({host_, static_cast<size_t>(bytes())});
  }
  std::vector<std::byte> copy(static_cast<size_t>(bytes()));
  if (MaybeFailure failure = Download(copy)) return *std::move(failure);
  return HostChecksum(copy);
}

}  // namespace mtmc::worker
