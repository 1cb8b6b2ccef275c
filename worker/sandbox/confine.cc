// SPDX-License-Identifier: Apache-2.0
#include "worker/sandbox/confine.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/subprocess.h"
#include "worker/sandbox/launch_spec.h"

namespace mtmc::worker {
namespace {

// Longest argument that Linux takes.
constexpr size_t kMaxSpecBytes = size_t{128} << 10;

// A folder for HOME and TMPDIR: empty in a new root, otherwise within the working
// folder.
absl::StatusOr<std::string> PrivateFolder(const LaunchSpec& spec) {
  if (spec.mechanisms.contains(Mechanism::kMountNamespace)) return "/tmp";
  const std::string folder = absl::StrCat(spec.working_folder, "/private");
  MTMC_RETURN_IF_ERROR(base::MakeFolder(folder));
  return folder;
}

// The one child of `process`, 0 if there is none.
pid_t ChildOf(pid_t process) {
  std::ifstream file(absl::StrCat("/proc/", process, "/task/", process, "/children"));
  pid_t child = 0;
  return file >> child ? child : 0;
}

}  // namespace

absl::Status Confine(const Confinement& confinement, base::SubprocessOptions& start) {
  if (confinement.isolation.mechanisms.empty()) return absl::OkStatus();
  if (start.argv.empty() || start.argv[0].empty() || start.argv[0][0] != '/') {
    return absl::InvalidArgumentError("the program must be an absolute path");
  }
  LaunchSpec spec{.rights = confinement.rights,
                  .mechanisms = confinement.isolation.mechanisms,
                  .working_folder = start.working_folder.lexically_normal().string()};
  spec.rights.writable.push_back(spec.working_folder);
  for (const std::string& folder : spec.rights.writable) {
    MTMC_RETURN_IF_ERROR(base::MakeFolder(folder));
  }
  MTMC_ASSIGN_OR_RETURN(const std::string home, PrivateFolder(spec));
  for (const char* name : {"HOME", "TMPDIR"}) start.variables[name] = home;
  // Packages that the user installed stay where they are.
  if (const char* user_home = std::getenv("HOME")) {
    start.variables["PYTHONUSERBASE"] = absl::StrCat(user_home, "/.local");
  }
  start.variables["XDG_CACHE_HOME"] = home + "/.cache";
  // Without a password file, and in a Python that asks for its user.
  start.variables["USER"] = "mtmc";
  std::string json = ToJson(spec);
  if (json.size() >= kMaxSpecBytes) {
    return absl::InvalidArgumentError("the rights name too many paths");
  }
  std::vector<std::string> argv = {confinement.isolation.launcher, "--spec", std::move(json), "--"};
  argv.insert(argv.end(), start.argv.begin(), start.argv.end());
  start.argv = std::move(argv);
  return absl::OkStatus();
}

pid_t FindProgram(pid_t launcher) {
  const pid_t init = ChildOf(launcher);
  return init == 0 ? 0 : ChildOf(init);
}

}  // namespace mtmc::worker
