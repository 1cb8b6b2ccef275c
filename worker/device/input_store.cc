// SPDX-License-Identifier: Apache-2.0
#include "worker/device/input_store.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace mtmc::worker {
namespace {

using KeptPointer = std::shared_ptr<const KeptTensor>;

}  // namespace

InputStore::InputStore(Device& device, int64_t limit_bytes)
    : device_(device), limit_bytes_(limit_bytes) {}

Outcome<bool> InputStore::Keep(int64_t id, const kernel::Program& program,
                               const InputSources& inputs) {
  sets_.erase(id);
  Set set;
  int64_t bytes = UsedBytes();
  std::vector<std::pair<std::string, std::shared_ptr<KeptTensor>>> copies;
  std::vector<BufferScan> scans;
  for (const kernel::Tensor& tensor : program.tensors) {
    if (!IsReadOnly(tensor)) continue;
    // A missing input shows when the program is executed.
    auto source = inputs.find(tensor.name);
    if (source == inputs.end()) continue;
    // Weights are mostly those of the other sets, and then not held again.
    const bool is_shared = tensor.role == kernel::Tensor::Role::kWeight && IsInAnySet(tensor.name);
    if (!is_shared) bytes += tensor.type.bytes();
    if (bytes > limit_bytes_) return false;
    if (KeptPointer kept = KeptOf(source->second)) {
      set.tensors[tensor.name] = std::move(kept);
      continue;
    }
    auto copy = CopyToKeep(device_, tensor, source->second);
    if (!copy.ok()) {
      if (copy.failure().kind == Failure::Kind::kOutOfMemory) return false;
      return copy.failure();
    }
    scans.push_back(ChecksumScan((*copy)->buffer.get()));
    copies.emplace_back(tensor.name, *std::move(copy));
  }
  if (MaybeFailure failure = device_.Scan(scans)) return *std::move(failure);
  for (size_t i = 0; i < copies.size(); ++i) {
    auto& [name, copy] = copies[i];
    copy->checksum = scans[i].checksum;
    KeptPointer equal = FindEqual(name, *copy);
    set.tensors[name] = equal ? std::move(equal) : std::move(copy);
  }
  sets_[id] = std::move(set);
  return true;
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

bool InputStore::IsInAnySet(const std::string& name) const {
  return std::any_of(sets_.begin(), sets_.end(),
                     [&](const auto& entry) { return entry.second.tensors.contains(name); });
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
  const auto tensors = Tensors();
  std::vector<BufferScan> scans;
  for (const auto& [tensor, name] : tensors) scans.push_back(AboutKept(*tensor));
  if (MaybeFailure failure = device_.Scan(scans)) return failure;
  auto scan = scans.begin();
  for (const auto& [tensor, name] : tensors) {
    if (IsIntact(*tensor, *scan++)) continue;
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
