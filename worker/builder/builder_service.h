// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "mtmc/pipe/v1/builder.pb.h"
#include "worker/builder/tool_paths.h"
#include "worker/device/compiler.h"

namespace mtmc::worker {

// Parses and compiles programs, the variants of one in parallel. What the
// program does wrong is in the response; a compiler that cannot be opened is an
// UNAVAILABLE status. Thread-compatible.
class BuilderService {
 public:
  // `num_threads` compile the variants of one request; 0 means one per core.
  explicit BuilderService(ToolPaths tools, int num_threads = 0);
  ~BuilderService();

  absl::StatusOr<pipe::v1::BuilderResponse> Answer(const pipe::v1::BuilderRequest& request);

 private:
  absl::StatusOr<Compiler*> FindCompiler(kernel::Dialect dialect,
                                         const pipe::v1::BuilderRequest::Build& build);

  const ToolPaths tools_;
  const size_t num_threads_;
  // By dialect and device, opened at the first use.
  std::map<std::string, std::unique_ptr<Compiler>> compilers_;
};

}  // namespace mtmc::worker
