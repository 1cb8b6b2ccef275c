// SPDX-License-Identifier: Apache-2.0
#include "policy/model/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace mtmc::policy {
namespace {

using Json = nlohmann::json;

// The format's own limit on a header.
constexpr uint64_t kLongestHeader = 100'000'000;
constexpr uint64_t kLengthBytes = 8;
constexpr size_t kMaxRank = 8;

absl::Status Damaged(const std::string& name, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("tensor '", name, "' ", what));
}

std::optional<WeightType> TypeFromName(const Json& name) {
  if (name == "F32") return WeightType::kF32;
  if (name == "F16") return WeightType::kF16;
  if (name == "BF16") return WeightType::kBF16;
  return std::nullopt;
}

// A count from a peer: absent unless it is an integer of at least 0.
std::optional<uint64_t> Count(const Json& value) {
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  return std::nullopt;
}

absl::StatusOr<TensorEntry> ParseEntry(const std::string& name, WeightType type, const Json& json,
                                       size_t data_bytes) {
  TensorEntry entry;
  entry.type = type;
  const Json& shape = json.value("shape", Json());
  const Json& offsets = json.value("data_offsets", Json());
  if (!shape.is_array() || shape.size() > kMaxRank) return Damaged(name, "has no usable shape");
  if (!offsets.is_array() || offsets.size() != 2) return Damaged(name, "has no data offsets");
  uint64_t bytes = type == WeightType::kF32 ? 4 : 2;
  for (const Json& value : shape) {
    const std::optional<uint64_t> extent = Count(value);
    if (!extent || __builtin_mul_overflow(bytes, *extent, &bytes) || *extent > INT64_MAX) {
      return Damaged(name, "has a shape that overflows");
    }
    entry.shape.push_back(static_cast<int64_t>(*extent));
  }
  const std::optional<uint64_t> begin = Count(offsets[0]);
  const std::optional<uint64_t> end = Count(offsets[1]);
  if (!begin || !end || *begin > *end || *end > data_bytes) {
    return Damaged(name, absl::StrCat("lies outside of the ", data_bytes, " bytes of data"));
  }
  if (*end - *begin != bytes) {
    return Damaged(name, absl::StrCat("has ", *end - *begin, " bytes, its shape needs ", bytes));
  }
  entry.begin = *begin;
  entry.end = *end;
  return entry;
}

// File names of the shards that an index names, each once.
absl::StatusOr<std::set<std::string>> ReadIndex(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  const Json index = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": has no 'weight_map'"));
  }
  std::set<std::string> files;
  for (const Json& file : index["weight_map"]) {
    const std::string name = file.is_string() ? file.get<std::string>() : std::string();
    // A shard lies in the folder itself; a path could lead anywhere.
    if (name.empty() || name.front() == '.' || name.find('/') != name.npos) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": '", name, "' is no file name"));
    }
    files.insert(name);
  }
  if (files.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": names no file"));
  return files;
}

}  // namespace

absl::StatusOr<std::map<std::string, TensorEntry>> ParseSafetensorsHeader(std::string_view header,
                                                                          size_t data_bytes) {
  const Json root = Json::parse(header, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) return absl::InvalidArgumentError("the header is not a JSON object");
  std::map<std::string, TensorEntry> entries;
  for (const auto& [name, json] : root.items()) {
    if (name == "__metadata__") continue;
    if (!json.is_object()) return Damaged(name, "is not described by an object");
    const std::optional<WeightType> type = TypeFromName(json.value("dtype", Json()));
    if (!type) continue;
    MTMC_ASSIGN_OR_RETURN(entries[name], ParseEntry(name, *type, json, data_bytes));
  }
  return entries;
}

// A read-only mapping of a whole file. Immovable: others hold its address.
class WeightFiles::MappedFile {
 public:
  static absl::StatusOr<std::unique_ptr<MappedFile>> Create(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));

    struct stat facts {};

    void* address = MAP_FAILED;
    if (fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0) {
      address = mmap(nullptr, static_cast<size_t>(facts.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    }
    close(file);
    if (address == MAP_FAILED) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": cannot be mapped, or is empty"));
    }
    return std::unique_ptr<MappedFile>(new MappedFile(address, static_cast<size_t>(facts.st_size)));
  }

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  ~MappedFile() { munmap(address_, size_); }

  std::string_view contents() const { return {static_cast<const char*>(address_), size_}; }

 private:
  MappedFile(void* address, size_t size) : address_(address), size_(size) {}

  void* const address_;
  const size_t size_;
};

WeightFiles::WeightFiles() = default;
WeightFiles::WeightFiles(WeightFiles&&) noexcept = default;
WeightFiles& WeightFiles::operator=(WeightFiles&&) noexcept = default;
WeightFiles::~WeightFiles() = default;

absl::StatusOr<WeightFiles> WeightFiles::Open(const std::string& folder) {
  const std::string single = folder + "/model.safetensors";
  const std::string index = folder + "/model.safetensors.index.json";
  std::error_code ignored;
  WeightFiles weights;
  if (std::filesystem::exists(single, ignored)) {
    MTMC_RETURN_IF_ERROR(weights.AddFile(single));
    return weights;
  }
  if (!std::filesystem::exists(index, ignored)) {
    return absl::NotFoundError(
        absl::StrCat("no model.safetensors and no model.safetensors.index.json in '", folder, "'"));
  }
  MTMC_ASSIGN_OR_RETURN(const std::set<std::string> names, ReadIndex(index));
  for (const std::string& name : names) {
    MTMC_RETURN_IF_ERROR(weights.AddFile(absl::StrCat(folder, "/", name)));
  }
  return weights;
}

absl::Status WeightFiles::AddFile(const std::string& path) {
  MTMC_ASSIGN_OR_RETURN(std::unique_ptr<MappedFile> file, MappedFile::Create(path));
  const std::string_view contents = file->contents();
  uint64_t header_bytes = 0;
  if (contents.size() < kLengthBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is shorter than 8 bytes"));
  }
  std::memcpy(&header_bytes, contents.data(), kLengthBytes);
  if (header_bytes > kLongestHeader || header_bytes > contents.size() - kLengthBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": says its header has ", header_bytes,
                                                   " bytes, the file has ", contents.size()));
  }
  const std::string_view data = contents.substr(kLengthBytes + header_bytes);
  absl::StatusOr<std::map<std::string, TensorEntry>> entries =
      ParseSafetensorsHeader(contents.substr(kLengthBytes, header_bytes), data.size());
  if (!entries.ok()) return base::Annotate(entries.status(), absl::StrCat("in ", path));
  for (auto& [name, entry] : *entries) {
    const std::string_view bytes = data.substr(entry.begin, entry.end - entry.begin);
    tensors_[name] = {.type = entry.type,
                      .shape = std::move(entry.shape),
                      .bytes = std::as_bytes(std::span(bytes))};
  }
  files_.push_back(std::move(file));
  return absl::OkStatus();
}

const WeightFiles::Tensor* WeightFiles::Find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

std::vector<std::string_view> WeightFiles::contents() const {
  std::vector<std::string_view> contents;
  for (const auto& file : files_) contents.push_back(file->contents());
  return contents;
}

}  // namespace mtmc::policy
