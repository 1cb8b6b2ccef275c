// SPDX-License-Identifier: Apache-2.0
#include "worker/device/plan_tensors.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "worker/device/outbox.h"

namespace mtmc::worker {
namespace {

// Odd, so that multiplication by it loses nothing.
constexpr uint64_t kDigestMultiplier = 0x9e3779b97f4a7c15;

// Inputs of a sixteenth of the device's memory have two places; larger ones get new
// memory each time.
constexpr int64_t kSpareMemoryShare = 16;
constexpr size_t kInputPlaces = 2;

// Plans whose tensors are up to this part of the memory have outputs that stay.
constexpr int64_t kStayingMemoryShare = 64;

// A plan that moves no more bytes than this, for each compute unit, may be so short that
// the place of its data shows in its time (H200: up to 0.2 us of 5). Its memory takes
// 16 us for them there.
constexpr int64_t kSmallBytesPerUnit = int64_t{512} << 10;

// The more places, the less is left of them in the mean. Those of small plans take so much
// memory together.
constexpr int64_t kLeastPlaces = 6;
constexpr int64_t kMostPlaces = 64;
constexpr int64_t kBytesOfPlaces = int64_t{512} << 20;

Failure NoInput(const kernel::Tensor& tensor) {
  return {.kind = Failure::Kind::kCheck,
          .message = absl::StrCat("line ", tensor.line, ": there is no input '", tensor.name, "'")};
}

}  // namespace

PlanTensors::PlanTensors(Device& device, const kernel::Program& program)
    : device_(device), program_(program), random_(std::random_device()()) {
  for (const kernel::Tensor& tensor : program.tensors) tensors_[tensor.name].tensor = &tensor;
}

PlanTensors::~PlanTensors() = default;

PlanTensor* PlanTensors::Find(std::string_view name) {
  auto slot = tensors_.find(name);
  return slot == tensors_.end() ? nullptr : &slot->second;
}

bool PlanTensors::HasInputAt(const void* address, int64_t bytes) const {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const auto end = begin + static_cast<uintptr_t>(bytes);
  return std::any_of(tensors_.begin(), tensors_.end(), [&](const auto& entry) {
    const PlanTensor& other = entry.second;
    if (!IsReadOnly(*other.tensor) || !other.current()) return false;
    const auto input = reinterpret_cast<uintptr_t>(other.current()->address());
    const auto input_end = input + static_cast<uintptr_t>(other.tensor->type.bytes());
    return input < end && begin < input_end;
  });
}

MaybeFailure PlanTensors::Place(const InputSources& inputs) {
  left_.clear();
  std::vector<PlanTensor*> copied;
  for (auto& [name, slot] : tensors_) {
    if (!IsReadOnly(*slot.tensor)) continue;
    auto source = inputs.find(name);
    if (source == inputs.end()) return NoInput(*slot.tensor);
    if (MaybeFailure failure = Move(slot, kInputPlaces)) return failure;
    if (MaybeFailure failure = CopyInput(*slot.tensor, source->second, *slot.own)) return failure;
    slot.source = KeptOf(source->second);
    if (slot.source) {
      slot.checksum = slot.source->checksum;
    } else {
      copied.push_back(&slot);
    }
  }
  DropLargeSpares();
  return TakeChecksums(copied);
}

MaybeFailure PlanTensors::TakeChecksums(const std::vector<PlanTensor*>& placed) {
  std::vector<BufferScan> scans;
  for (const PlanTensor* slot : placed) {
    scans.push_back(ChecksumScan(slot->own.get()));
  }
  if (MaybeFailure failure = device_.Scan(scans)) return failure;
  for (size_t i = 0; i < placed.size(); ++i) placed[i]->checksum = scans[i].checksum;
  return std::nullopt;
}

bool PlanTensors::UsesKept() const { return !program_.has_capture && !IsSmall(); }

void PlanTensors::Use(PlanTensor& slot, std::shared_ptr<const KeptTensor> kept) {
  if (slot.own) {
    left_.emplace_back(slot.tensor->name, slot.own.get());
    slot.spares.push_back(std::move(slot.own));
  }
  used_.emplace(kept, slot.tensor->name);
  slot.source = std::move(kept);
}

MaybeFailure PlanTensors::Move(PlanTensor& slot, size_t places) {
  std::unique_ptr<Buffer> next;
  if (!slot.spares.empty() && slot.spares.size() + 1 >= places) {
    std::swap(slot.spares[random_() % slot.spares.size()], slot.spares.back());
    next = std::move(slot.spares.back());
    slot.spares.pop_back();
  } else {
    auto buffer = Allocate(*slot.tensor);
    if (!buffer.ok()) return buffer.failure();
    next = *std::move(buffer);
  }
  if (slot.own) slot.spares.push_back(std::move(slot.own));
  slot.own = std::move(next);
  return std::nullopt;
}

int64_t PlanTensors::TotalBytes() const {
  int64_t bytes = 0;
  for (const kernel::Tensor& tensor : program_.tensors) bytes += tensor.type.bytes();
  return bytes;
}

bool PlanTensors::IsSmall() const {
  return TotalBytes() <= kSmallBytesPerUnit * device_.facts().compute_units;
}

Outcome<bool> PlanTensors::Shuffle(bool has_graph) {
  if (!IsSmall()) return false;
  const int64_t places =
      std::clamp(kBytesOfPlaces / std::max(TotalBytes(), int64_t{1}), kLeastPlaces, kMostPlaces);
  if (!has_graph) HoldResults(static_cast<size_t>(places));
  for (auto& [name, slot] : tensors_) {
    if (!slot.own) continue;
    const Buffer* before = slot.own.get();
    if (MaybeFailure failure = Move(slot, static_cast<size_t>(places))) return *std::move(failure);
    if (!IsReadOnly(*slot.tensor)) continue;
    if (MaybeFailure failure = slot.own->CopyFrom(*before)) return *std::move(failure);
  }
  return true;
}

void PlanTensors::HoldResults(size_t places) {
  std::vector<std::unique_ptr<LibraryTensor>> results;
  for (auto& [name, slot] : tensors_) {
    slot.view.reset();
    if (slot.library) results.push_back(std::move(slot.library));
  }
  if (results.empty()) return;
  held_results_.push_back(std::move(results));
  if (held_results_.size() < places) return;
  std::swap(held_results_[random_() % held_results_.size()], held_results_.back());
  held_results_.pop_back();
}

Outcome<std::unique_ptr<Buffer>> PlanTensors::Allocate(const kernel::Tensor& tensor) {
  auto buffer = device_.Allocate(tensor.type.bytes());
  if (buffer.ok()) return buffer;
  DropSpares();
  return device_.Allocate(tensor.type.bytes());
}

void PlanTensors::DropSpares() {
  held_results_.clear();
  left_.clear();
  for (auto& [name, slot] : tensors_) slot.spares.clear();
}

void PlanTensors::DropLargeSpares() {
  int64_t bytes = 0;
  for (const auto& [name, slot] : tensors_) {
    for (const auto& spare : slot.spares) bytes += spare->bytes();
  }
  if (bytes > device_.facts().memory_bytes / kSpareMemoryShare) DropSpares();
}

MaybeFailure PlanTensors::Rewrite(const InputSources& inputs) {
  for (auto& [name, slot] : tensors_) {
    if (!IsReadOnly(*slot.tensor)) continue;
    auto source = inputs.find(name);
    if (source == inputs.end()) return NoInput(*slot.tensor);
    const auto kept = KeptOf(source->second);
    MTMC_CHECK(kept && slot.current());
    // The same bytes are there already; if the program has changed them, Check
    // tells, which a copy would hide.
    if (kept == slot.source) continue;
    if (UsesKept()) {
      Use(slot, kept);
      continue;
    }
    if (MaybeFailure failure = CopyInput(*slot.tensor, source->second, *slot.own)) return failure;
    slot.source = kept;
    slot.checksum = kept->checksum;
  }
  return std::nullopt;
}

MaybeFailure PlanTensors::Clear() {
  const bool outputs_stay = OutputsStay();
  for (auto& [name, slot] : tensors_) {
    if (outputs_stay && slot.tensor->role == kernel::Tensor::Role::kOutput) {
      std::swap(slot.before, slot.published ? slot.published : slot.own);
    }
    slot.published.reset();
    if (IsReadOnly(*slot.tensor)) continue;
    slot.view.reset();
    slot.library.reset();
    if (!slot.is_owned) continue;
    if (!slot.own) {
      auto buffer = Allocate(*slot.tensor);
      if (!buffer.ok()) return buffer.failure();
      slot.own = *std::move(buffer);
    }
  }
  return std::nullopt;
}

MaybeFailure PlanTensors::Randomize(uint64_t seed) {
  std::vector<BufferFill> fills;
  for (auto& [name, slot] : tensors_) {
    const bool is_input = IsReadOnly(*slot.tensor);
    if (slot.own) fills.push_back({.buffer = slot.own.get(), .with_tensor = !is_input});
    // The memory of an input that is read where it is kept.
    if (!slot.own && slot.source) {
      fills.push_back({.buffer = slot.source->buffer.get(), .with_tensor = false});
    }
    // Results of the last execution, whose memory the next one gets again.
    if (slot.view && !slot.is_view_of_input) fills.push_back({.buffer = slot.view.get()});
  }
  return device_.Randomize(fills, seed);
}

void PlanTensors::DropResults() {
  for (auto& [name, slot] : tensors_) {
    slot.view.reset();
    slot.library.reset();
  }
}

bool PlanTensors::OutputsStay() const {
  return TotalBytes() <= device_.facts().memory_bytes / kStayingMemoryShare;
}

void PlanTensors::DropPublished() {
  for (auto& [name, slot] : tensors_) {
    slot.published.reset();
    slot.before.reset();
  }
}

MaybeFailure PlanTensors::Check() {
  // What is looked at, and what it should be.
  struct Subject {
    std::string name;
    bool is_input = false;
    uint64_t checksum = 0;
  };

  std::vector<Subject> subjects;
  std::vector<BufferScan> scans;
  auto add = [&](const Subject& subject, const Buffer* buffer) {
    subjects.push_back(subject);
    scans.push_back({.buffer = buffer, .with_redzones = true, .with_checksum = subject.is_input});
  };
  for (const auto& [name, slot] : tensors_) {
    if (slot.own) {
      add({name, IsReadOnly(*slot.tensor), slot.checksum}, slot.own.get());
    } else if (slot.source) {
      used_.emplace(slot.source, name);
    }
  }
  for (const auto& [kept, name] : used_) add({name, true, kept->checksum}, kept->buffer.get());
  for (const auto& [name, buffer] : left_) add({name, true, Find(name)->checksum}, buffer);
  if (MaybeFailure failure = device_.Scan(scans)) return failure;
  used_.clear();
  left_.clear();
  for (size_t i = 0; i < scans.size(); ++i) {
    const auto& [name, is_input, checksum] = subjects[i];
    if (!scans[i].has_redzones) {
      return Failure{
          .kind = Failure::Kind::kOutOfBounds,
          .message = absl::StrCat("memory beside '", name, "' ",
                                  kernel::ToText(Find(name)->tensor->type), " was written")};
    }
    if (is_input && scans[i].checksum != checksum) {
      return Failure{.kind = Failure::Kind::kInputChanged,
                     .message = absl::StrCat("'", name, "' was changed, but is read only")};
    }
  }
  return std::nullopt;
}

Outcome<std::vector<PlanOutput>> PlanTensors::Outputs() {
  std::vector<PlanOutput> outputs;
  bool has_copies = false;
  for (const kernel::Tensor& tensor : program_.tensors) {
    if (tensor.role != kernel::Tensor::Role::kOutput) continue;
    PlanTensor& slot = tensors_.find(tensor.name)->second;
    const bool is_copied = slot.view && tensor.type.bytes() > Outbox::kSmallBytes;
    if (is_copied && !slot.published) {
      auto copy = device_.Allocate(tensor.type.bytes());
      if (!copy.ok()) return copy.failure();
      if (MaybeFailure failure = (*copy)->CopyFrom(*slot.view)) return *std::move(failure);
      slot.published = *std::move(copy);
      has_copies = true;
    }
    outputs.push_back({&tensor, is_copied ? slot.published.get() : slot.current()});
  }
  // Another process reads them, which no stream of ours orders.
  if (has_copies) {
    if (MaybeFailure failure = device_.Synchronize()) return *std::move(failure);
  }
  return outputs;
}

Outcome<uint64_t> PlanTensors::Digest() const {
  std::vector<BufferScan> scans;
  for (const kernel::Tensor& tensor : program_.tensors) {
    if (tensor.role != kernel::Tensor::Role::kOutput) continue;
    scans.push_back(ChecksumScan(tensors_.find(tensor.name)->second.current()));
  }
  if (MaybeFailure failure = device_.Scan(scans)) return *std::move(failure);
  uint64_t digest = 0;
  for (const BufferScan& scan : scans) {
    digest = (digest ^ scan.checksum) * kDigestMultiplier;
    digest ^= digest >> 32;
  }
  return digest;
}

}  // namespace mtmc::worker
