// SPDX-License-Identifier: Apache-2.0
#include "worker/sandbox/rights.h"

#include <glob.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/str_split.h"
#include "common/base/check.h"

namespace mtmc::worker {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

// Programs, libraries and what finds them; no configuration with secrets, no
// users, no logs.
constexpr const char* kSystemFolders[] = {
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/ld.so.conf",
    "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/OpenCL", "/etc/localtime",
    // Processor topology: thread pools and PoCL are sized by it.
    "/sys/devices/system"};

// What drivers and NVML read beside their devices.
constexpr const char* kGpuFolders[] = {"/sys/bus",    "/sys/class",  "/sys/dev",   "/sys/devices",
                                       "/sys/module", "/etc/nvidia", "/etc/vulkan"};

constexpr const char* kPlainDevices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                                         "/dev/urandom"};

void AddMatches(const char* pattern, std::vector<std::string>& paths) {
  glob_t found{};
  if (::glob(pattern, 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  }
  ::globfree(&found);
}

// Folders that the loader and the OpenCL loader are pointed at.
void AddFoldersOfVariable(const char* name, std::vector<std::string>& paths) {
  const char* value = std::getenv(name);
  if (value == nullptr) return;
  for (const auto part : absl::StrSplit(value, ':', absl::SkipEmpty())) {
    paths.emplace_back(part);
  }
}

// Absolute and clean, each once; the root itself is never meant.
std::vector<std::string> Clean(const std::vector<std::string>& paths) {
  std::vector<std::string> clean;
  for (const std::string& path : paths) {
    std::string text = std::filesystem::path(path).lexically_normal().string();
    while (text.size() > 1 && text.back() == '/') text.pop_back();
    if (text.size() > 1 && text[0] == '/') clean.push_back(std::move(text));
  }
  std::sort(clean.begin(), clean.end());
  clean.erase(std::unique(clean.begin(), clean.end()), clean.end());
  return clean;
}

Rights::Limits LimitsOf(PartyKind party) {
  Rights::Limits limits;
  if (party == PartyKind::kBuilder) {
    limits.processes = 512;
    limits.file_bytes = 2 * kGiB;
    // Compilers that need more are in a loop. Sanitizers reserve terabytes.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    limits.address_bytes = 32 * kGiB;
#endif
  }
  return limits;
}

}  // namespace

std::string NameOf(PartyKind party) {
  switch (party) {
    case PartyKind::kReference:
      return "reference";
    case PartyKind::kBuilder:
      return "builder";
    case PartyKind::kRunner:
      return "runner";
    case PartyKind::kDaemon:
      return "daemon";
  }
  return "";
}

bool Rights::has_gpu() const {
  return std::any_of(devices.begin(), devices.end(),
                     [](const std::string& path) { return path.starts_with("/dev/nvidia"); });
}

Rights MakeRights(PartyKind party, RightsOptions options) {
  MTMC_CHECK(party != PartyKind::kDaemon);
  Rights rights{.party = party, .num_descriptors = options.num_descriptors};
  rights.limits = LimitsOf(party);
  // torch.compile keeps its caches there; the others need room for one link.
  rights.scratch_bytes = party == PartyKind::kReference ? 8 * kGiB : 1 * kGiB;
  rights.readable = std::move(options.readable);
  rights.readable.insert(rights.readable.end(), std::begin(kSystemFolders),
                         std::end(kSystemFolders));
  rights.devices.assign(std::begin(kPlainDevices), std::end(kPlainDevices));
  AddFoldersOfVariable("LD_LIBRARY_PATH", rights.readable);
  AddFoldersOfVariable("OCL_ICD_VENDORS", rights.readable);
  if (options.has_gpu) {
    rights.readable.insert(rights.readable.end(), std::begin(kGpuFolders), std::end(kGpuFolders));
    AddMatches("/dev/nvidia*", rights.devices);
  }
  rights.readable = Clean(rights.readable);
  rights.devices = Clean(rights.devices);
  rights.writable = Clean(options.writable);
  return rights;
}

}  // namespace mtmc::worker
