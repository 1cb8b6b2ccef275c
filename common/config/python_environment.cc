// SPDX-License-Identifier: Apache-2.0
#include "common/config/python_environment.h"

#include <cstdlib>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/run_process.h"
#include "common/base/string_view.h"
#include "common/config/paths.h"
#include "common/rpc/error.h"

namespace mtmc::config {
namespace {

// Prints `key=value` lines. find_spec() of a top-level name imports nothing.
// PyTorch's version comes from its version.py, which imports nothing either.
constexpr char kProbe[] = R"py(
import glob, importlib.util, os, runpy, sys

def folder(name):
    try:
        spec = importlib.util.find_spec(name)
    except ImportError:
        return ''
    places = list(spec.submodule_search_locations or []) if spec else []
    return places[0] if places else ''

def first(pattern):
    found = sorted(glob.glob(pattern))
    return found[0] if found else ''

def existing(path):
    return path if os.path.isdir(path) else ''

print('python=' + sys.executable)
print('python_version=' + '.'.join(map(str, sys.version_info[:3])))
torch = folder('torch')
if torch:
    print('torch_version=' + runpy.run_path(os.path.join(torch, 'version.py'))['__version__'])
    print('torch_lib_dir=' + existing(os.path.join(torch, 'lib')))
    sys.pycache_prefix = None
    bytecode = importlib.util.cache_from_source(os.path.join(torch, '__init__.py'))
    print('bytecode=' + (bytecode if os.path.exists(bytecode) else ''))
cuda = folder('nvidia.cu13')
if cuda:
    print('cuda_lib_dir=' + existing(os.path.join(cuda, 'lib')))
    print('cuda_include_dir=' + existing(os.path.join(cuda, 'include')))
    print('nvrtc_library=' + first(os.path.join(cuda, 'lib', 'libnvrtc.so.1[0-9]')))
    print('cupti_library=' + first(os.path.join(cuda, 'lib', 'libcupti.so.1[0-9]')))
print('pyopencl=' + folder('pyopencl'))
real = os.path.dirname(os.path.realpath(sys.executable))
places = [sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(sys.executable), real]
print('folders=' + os.pathsep.join(dict.fromkeys(
    p for p in places + sys.path if os.path.isdir(p) and os.path.isabs(p) and p != '/')))
)py";

bool IsFile(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

// The interpreter to ask, by the order that Probe() promises.
std::filesystem::path Choose(const std::filesystem::path& python) {
  if (!python.empty()) return python;
  const char* variable = std::getenv("MTMC_PYTHON");
  if (variable != nullptr && *variable != '\0') return variable;
  std::error_code ignored;
  const auto current = std::filesystem::current_path(ignored) / ".venv/bin/python";
  if (IsFile(current)) return current;
  // A build tree lies at <checkout>/build/<preset>/bin, a bundle at <bundle>/bin.
  for (auto folder = ProgramDir(); folder.has_relative_path(); folder = folder.parent_path()) {
    if (IsFile(folder / ".venv/bin/python")) return folder / ".venv/bin/python";
  }
  return "python3";
}

absl::Status PythonMissing(const std::filesystem::path& python, const std::string& why) {
  return rpc::MakeError(
      absl::StatusCode::kNotFound, "PYTHON_MISSING",
      absl::StrCat("no usable Python at \"", python.string(), "\": ", why,
                   "; run scripts/setup, or set MTMC_PYTHON to a Python that has PyTorch 2.11"),
      {{"python", python.string()}});
}

std::map<std::string, std::string> ParseLines(const std::string& text) {
  std::map<std::string, std::string> values;
  for (const auto line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    values.insert(absl::StrSplit(line, absl::MaxSplits('=', 1)));
  }
  return values;
}

std::vector<std::filesystem::path> ToPaths(const std::string& joined) {
  std::vector<std::filesystem::path> paths;
  for (const auto path : absl::StrSplit(joined, ':', absl::SkipEmpty())) {
    paths.emplace_back(base::ToStd(path));
  }
  return paths;
}

}  // namespace

std::string PythonEnvironment::LibraryPath() const {
  std::vector<std::string> entries;
  if (!torch_lib_dir.empty()) entries.push_back(torch_lib_dir.string());
  if (!cuda_lib_dir.empty()) entries.push_back(cuda_lib_dir.string());
  return absl::StrJoin(entries, ":");
}

absl::StatusOr<PythonEnvironment> PythonEnvironment::Probe(const std::filesystem::path& python) {
  const std::filesystem::path chosen = Choose(python);
  // -P: a torch.py in the current folder must not pass for PyTorch. It exists
  // since Python 3.11; PYTHONSAFEPATH is the same and ignored before that.
  auto run = base::RunProcess(
      {.argv = {chosen.string(), "-c", kProbe}, .variables = {{"PYTHONSAFEPATH", "1"}}},
      {.timeout = absl::Seconds(30)});
  if (!run.ok()) return PythonMissing(chosen, std::string(run.status().message()));
  if (!run->exit.is_success()) {
    return PythonMissing(chosen, absl::StrCat("it ", run->exit.ToString(), ": ",
                                              absl::StripAsciiWhitespace(run->error)));
  }
  auto values = ParseLines(run->output);
  if (values["torch_lib_dir"].empty()) {
    return rpc::MakeError(
        absl::StatusCode::kNotFound, "TORCH_MISSING",
        absl::StrCat(chosen.string(), " has no PyTorch; run scripts/setup, or install it with \"",
                     chosen.string(), " -m pip install torch==2.11.0\""),
        {{"python", chosen.string()}});
  }
  return PythonEnvironment{.python = values["python"],
                           .python_version = values["python_version"],
                           .torch_version = values["torch_version"],
                           .torch_lib_dir = values["torch_lib_dir"],
                           .cuda_lib_dir = values["cuda_lib_dir"],
                           .cuda_include_dir = values["cuda_include_dir"],
                           .nvrtc_library = values["nvrtc_library"],
                           .cupti_library = values["cupti_library"],
                           .folders = ToPaths(values["folders"]),
                           .has_nvidia_device = std::filesystem::exists("/dev/nvidiactl"),
                           .has_pyopencl = !values["pyopencl"].empty(),
                           .has_bytecode = !values["bytecode"].empty()};
}

}  // namespace mtmc::config
