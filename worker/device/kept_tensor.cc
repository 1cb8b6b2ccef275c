// SPDX-License-Identifier: Apache-2.0
#include "worker/device/kept_tensor.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace mtmc::worker {
namespace {

using KeptPointer = std::shared_ptr<const KeptTensor>;

}  // namespace

KeptPointer KeptOf(const InputSource& source) {
  const auto* kept = std::get_if<KeptPointer>(&source);
  return kept ? *kept : nullptr;
}

bool IsReadOnly(const kernel::Tensor& tensor) {
  return tensor.role == kernel::Tensor::Role::kInput ||
         tensor.role == kernel::Tensor::Role::kWeight;
}

MaybeFailure CopyInput(const kernel::Tensor& tensor, const InputSource& source, Buffer& buffer) {
  if (const auto* peer = std::get_if<PeerMemory>(&source)) return buffer.CopyFrom(*peer);
  const auto* kept = std::get_if<KeptPointer>(&source);
  const auto* bytes = std::get_if<std::span<const std::byte>>(&source);
  const int64_t size = kept ? (*kept)->buffer->bytes() : static_cast<int64_t>(bytes->size());
  if (size != buffer.bytes()) {
    return Failure{.kind = Failure::Kind::kCheck,
                   .message = absl::StrCat("line ", tensor.line, ": input '", tensor.name, "' has ",
                                           size, " bytes, not ", buffer.bytes())};
  }
  return kept ? buffer.CopyFrom(*(*kept)->buffer) : buffer.Upload(*bytes);
}

Outcome<std::shared_ptr<KeptTensor>> CopyToKeep(Device& device, const kernel::Tensor& tensor,
                                                const InputSource& source) {
  auto buffer = device.Allocate(tensor.type.bytes());
  if (!buffer.ok()) return buffer.failure();
  if (MaybeFailure failure = CopyInput(tensor, source, **buffer)) return *std::move(failure);
  return std::make_shared<KeptTensor>(KeptTensor{.buffer = *std::move(buffer), .checksum = 0});
}

BufferScan AboutKept(const KeptTensor& kept) {
  return {.buffer = kept.buffer.get(), .with_redzones = true, .with_checksum = true};
}

bool IsIntact(const KeptTensor& kept, const BufferScan& answer) {
  return answer.has_redzones && answer.checksum == kept.checksum;
}

}  // namespace mtmc::worker
