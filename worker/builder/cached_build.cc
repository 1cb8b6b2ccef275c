// SPDX-License-Identifier: Apache-2.0
#include "worker/builder/cached_build.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/config/version.h"

namespace mtmc::worker {
namespace {

constexpr std::string_view kMagic = "mtmc build 1\n";
constexpr size_t kDigestBytes = 64;
// Changes with what the bytes of a binary mean to a runner (cuda/cubin_set.h).
constexpr std::string_view kBinaries = "2";

// Length first, so that no two sequences of fields give the same bytes.
void AppendField(std::string_view field, base::Sha256Builder& key) {
  key.Append(std::to_string(field.size())).Append(":").Append(field);
}

}  // namespace

std::string BuildKey(const pipe::v1::BuilderRequest::Build& build, const v1::Variant& variant) {
  base::Sha256Builder key;
  AppendField(config::Version(), key);
  AppendField(kBinaries, key);
  AppendField(build.program(), key);
  const v1::DeviceFacts& device = build.device();
  AppendField(device.product(), key);
  AppendField(std::to_string(device.compute_capability()), key);
  AppendField(device.driver_version(), key);
  AppendField(device.toolchain_version(), key);
  AppendField(std::to_string(build.device_index()), key);
  // In order of the names: a protobuf map has none.
  const std::map<std::string, int64_t> parameters(variant.parameters().begin(),
                                                  variant.parameters().end());
  for (const auto& [name, value] : parameters) {
    AppendField(name, key);
    AppendField(std::to_string(value), key);
  }
  return key.Finish().sha256_hex;
}

std::string ToCacheFile(const pipe::v1::BuilderResponse::Built& built) {
  const std::string message = built.SerializeAsString();
  return absl::StrCat(std::string(kMagic), base::Sha256(message).sha256_hex, message);
}

absl::StatusOr<pipe::v1::BuilderResponse::Built> ParseCacheFile(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return absl::DataLossError("not a cached build");
  bytes.remove_prefix(kMagic.size());
  if (bytes.size() < kDigestBytes) return absl::DataLossError("the digest is cut short");
  const std::string_view digest = bytes.substr(0, kDigestBytes);
  bytes.remove_prefix(kDigestBytes);
  if (base::Sha256(bytes).sha256_hex != digest) return absl::DataLossError("the digest differs");
  pipe::v1::BuilderResponse::Built built;
  if (!built.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("not a message");
  }
  if (built.has_failure() || built.binary().empty()) return absl::DataLossError("not a binary");
  return built;
}

}  // namespace mtmc::worker
