// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace mtmc::policy {

// Element type of a stored weight.
enum class WeightType { kF32, kF16, kBF16 };

// One tensor inside a safetensors file, by place. A value.
struct TensorEntry {
  WeightType type = WeightType::kF32;
  std::vector<int64_t> shape;
  // Range in the data part, which begins after the header.
  size_t begin = 0;
  size_t end = 0;
};

// The header of a safetensors file: `header` is the JSON text, `data_bytes`
// the length of what follows it. Tensors of other element types are left out.
// INVALID_ARGUMENT, with the tensor's name, when a range lies outside the data
// or does not have the length that type and shape need.
absl::StatusOr<std::map<std::string, TensorEntry>> ParseSafetensorsHeader(std::string_view header,
                                                                          size_t data_bytes);

// The weights of a Hugging Face folder: `model.safetensors`, or the shards that
// `model.safetensors.index.json` names, mapped read-only. A resource; move-only.
// Thread-safe once open.
//
// A file that somebody truncates while it is mapped kills the process with
// SIGBUS; readers copy what they need at once and drop the mapping.
class WeightFiles {
 public:
  struct Tensor {
    WeightType type = WeightType::kF32;
    std::vector<int64_t> shape;
    // Row-major elements, little endian, not necessarily aligned. Valid while
    // the WeightFiles lives.
    std::span<const std::byte> bytes;
  };

  // NOT_FOUND when the folder has no weights, INVALID_ARGUMENT when a file is
  // damaged; the message names the file.
  static absl::StatusOr<WeightFiles> Open(const std::string& folder);

  WeightFiles(WeightFiles&&) noexcept;
  WeightFiles& operator=(WeightFiles&&) noexcept;
  ~WeightFiles();

  // Null when there is no such tensor of a supported type. Valid while the
  // WeightFiles lives.
  const Tensor* Find(const std::string& name) const;

  // Contents of each file in the order of their names, for a digest.
  std::vector<std::string_view> contents() const;

 private:
  class MappedFile;

  WeightFiles();
  absl::Status AddFile(const std::string& path);

  std::vector<std::unique_ptr<MappedFile>> files_;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace mtmc::policy
