// SPDX-License-Identifier: Apache-2.0
#include "worker/device/input_store.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mtmc::worker {
namespace {

using KeptPointer = std::shared_ptr<const KeptTensor>;

// Around kept tensors.
constexpr uint8_t kRedzoneValue = 0x5A;

}  // namespace

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

InputStore::InputStore(Device& device, int64_t limit_bytes)
    : device_(device), limit_bytes_(limit_bytes) {}

Outcome<bool> InputStore::Keep(int64_t id, const kernel::Program& program,
                               const InputSources& inputs) {
  sets_.erase(id);
  Set set;
  int64_t bytes = UsedBytes();
  for (const kernel::Tensor& tensor : program.tensors) {
    if (!IsReadOnly(tensor)) continue;
    // A missing input shows when the program is executed.
    auto source = inputs.find(tensor.name);
    if (source == inputs.end()) continue;
    bytes += tensor.type.bytes();
    if (bytes > limit_bytes_) return false;
    auto kept = KeepTensor(tensor, source->second);
    if (!kept.ok()) {
      if (kept.failure().kind == Failure::Kind::kOutOfMemory) return false;
      return kept.failure();
    }
    if (auto equal = FindEqual(tensor.name, **kept)) {
      bytes -= tensor.type.bytes();
      *kept = std::move(equal);
    }
    set.tensors[tensor.name] = *std::move(kept);
  }
  sets_[id] = std::move(set);
  return true;
}

Outcome<KeptPointer> InputStore::KeepTensor(const kernel::Tensor& tensor,
                                            const InputSource& source) {
  auto buffer = device_.Allocate(tensor.type.bytes());
  if (!buffer.ok()) return buffer.failure();
  if (MaybeFailure failure = (*buffer)->Guard(kRedzoneValue)) return *std::move(failure);
  if (MaybeFailure failure = CopyInput(tensor, source, **buffer)) return *std::move(failure);
  auto checksum = (*buffer)->Checksum();
  if (!checksum.ok()) return checksum.failure();
  return KeptPointer(std::make_shared<KeptTensor>(
      KeptTensor{.buffer = *std::move(buffer), .checksum = *checksum}));
}

KeptPointer InputStore::FindEqual(const std::string& name, const KeptTensor& tensor) const {
  for (const auto& [id, set] : sets_) {
    auto other = set.tensors.find(name);
    if (other == set.tensors.end()) continue;
    const auto& kept = std::get<KeptPointer>(other->second);
    if (kept->checksum == tensor.checksum && kept->buffer->bytes() == tensor.buffer->bytes()) {
      return kept;
    }
  }
  return nullptr;
}

std::map<const KeptTensor*, std::string> InputStore::Tensors() const {
  std::map<const KeptTensor*, std::string> tensors;
  for (const auto& [id, set] : sets_) {
    for (const auto& [name, source] : set.tensors) {
      tensors.emplace(std::get<KeptPointer>(source).get(), name);
    }
  }
  return tensors;
}

int64_t InputStore::UsedBytes() const {
  int64_t bytes = 0;
  for (const auto& [tensor, name] : Tensors()) bytes += tensor->buffer->bytes();
  return bytes;
}

MaybeFailure InputStore::Check() const {
  for (const auto& [tensor, name] : Tensors()) {
    auto intact = tensor->buffer->HasRedzones(kRedzoneValue);
    if (!intact.ok()) return intact.failure();
    auto checksum = tensor->buffer->Checksum();
    if (!checksum.ok()) return checksum.failure();
    if (*intact && *checksum == tensor->checksum) continue;
    return Failure{.kind = Failure::Kind::kOutOfBounds,
                   .message = absl::StrCat("memory that the program was never given was written: ",
                                           "kept contents of '", name, "'")};
  }
  return std::nullopt;
}

const InputSources* InputStore::Find(int64_t id) const {
  auto set = sets_.find(id);
  return set == sets_.end() ? nullptr : &set->second.tensors;
}

bool InputStore::IsUnseen(int64_t id) const {
  auto set = sets_.find(id);
  return set != sets_.end() && set->second.is_unseen;
}

void InputStore::MarkSeen(int64_t id) {
  last_seen_ = id;
  if (auto set = sets_.find(id); set != sets_.end()) set->second.is_unseen = false;
}

void InputStore::Clear() {
  sets_.clear();
  last_seen_ = 0;
}

}  // namespace mtmc::worker
