// SPDX-License-Identifier: Apache-2.0
#include "common/config/paths.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <system_error>

namespace mtmc::config {
namespace {

// The value of a variable; empty if it is unset. XDG says that relative paths
// are to be ignored, so they are for its variables.
std::filesystem::path Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::filesystem::path Home() {
  if (const auto home = Variable("HOME"); !home.empty()) return home;
  const passwd* user = ::getpwuid(::getuid());
  return user != nullptr && user->pw_dir != nullptr ? user->pw_dir : "/";
}

std::filesystem::path Choose(const char* own, const char* xdg,
                             const std::filesystem::path& fallback) {
  if (const auto path = Variable(own); !path.empty()) return std::filesystem::absolute(path);
  if (const auto path = Variable(xdg); path.is_absolute()) return path / "mtmc";
  return fallback;
}

}  // namespace

std::filesystem::path DataDir() {
  return Choose("MTMC_DATA_DIR", "XDG_DATA_HOME", Home() / ".local/share/mtmc");
}

std::filesystem::path CacheDir() {
  return Choose("MTMC_CACHE_DIR", "XDG_CACHE_HOME", Home() / ".cache/mtmc");
}

std::filesystem::path ConfigDir() {
  return Choose("MTMC_CONFIG_DIR", "XDG_CONFIG_HOME", Home() / ".config/mtmc");
}

std::filesystem::path RuntimeDir() {
  return Choose("MTMC_RUNTIME_DIR", "XDG_RUNTIME_DIR", "/tmp/mtmc-" + std::to_string(::getuid()));
}

std::filesystem::path ProgramDir() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

std::filesystem::path InstalledFile(const std::string& relative) {
  return ProgramDir().parent_path() / relative;
}

}  // namespace mtmc::config
