// SPDX-License-Identifier: Apache-2.0
//
// mtmc-sandbox: starts one child of the worker with the rights of its party.
//
//   mtmc-sandbox --spec JSON -- PROGRAM [ARGUMENT]...
//   mtmc-sandbox --probe
//
// The worker writes the JSON (launch_spec.h); people use the second form, which
// tells what this host allows.
#include <cstdio>
#include <iostream>
#include <string_view>

#include "worker/sandbox/confine.h"
#include "worker/sandbox/host_trial.h"
#include "worker/sandbox/launch_spec.h"
#include "worker/sandbox/launcher.h"

namespace {

constexpr int kExitUsage = 2;

// Index of the program in `argv`.
constexpr int kProgram = 4;

int Usage() {
  std::cerr << "usage: mtmc-sandbox --spec JSON -- PROGRAM [ARGUMENT]...\n"
               "       mtmc-sandbox --probe\n";
  return kExitUsage;
}

}  // namespace

// No command line library: this starts before every child, and in milliseconds.
int main(int argc, char** argv) {
  using std::string_view;
  if (argc == 2 && string_view(argv[1]) == "--probe") {
    std::cout << mtmc::worker::ToJson(mtmc::worker::TryHost()) << std::endl;
    return 0;
  }
  if (argc <= kProgram || string_view(argv[1]) != "--spec" || string_view(argv[3]) != "--") {
    return Usage();
  }
  const auto spec = mtmc::worker::ParseLaunchSpec(argv[2]);
  if (!spec.ok()) {
    std::cerr << "mtmc-sandbox: " << spec.status().message() << std::endl;
    return kExitUsage;
  }
  const absl::Status failure = mtmc::worker::Launch(*spec, argv + kProgram);
  std::cerr << "mtmc-sandbox: " << failure.message() << std::endl;
  return mtmc::worker::kLauncherFailed;
}
