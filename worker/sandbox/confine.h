// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include "absl/status/status.h"
#include "worker/sandbox/isolation.h"
#include "worker/sandbox/rights.h"

namespace mtmc::base {
struct SubprocessOptions;
}

namespace mtmc::worker {

// How one child is to be started.
struct Confinement {
  Rights rights;
  Isolation isolation;
};

// Changes `start` so that its program runs with these rights alone: the
// launcher mtmc-sandbox comes first, puts the mechanisms on itself in order, and
// becomes the program (its argv[0] must be an absolute path).
//
//   base::SubprocessOptions start{.argv = {...}};
//   MTMC_RETURN_IF_ERROR(Confine(confinement, start));
//   base::Subprocess::Start(start);
//
// The exit code or signal that the caller sees is the program's; a launcher that
// cannot do all it was told exits with kLauncherFailed and says why on standard
// error. The program never runs with less than it was told. HOME and TMPDIR
// become private, the working folder and all writable ones are made and may be
// changed by it. Without any mechanism nothing changes.
absl::Status Confine(const Confinement& confinement, base::SubprocessOptions& start);

// The process that runs the program, for who looks at it in /proc: with a pid
// namespace it is a grandchild of `launcher`, the process that was started. 0 when
// it is gone or not there yet.
pid_t FindProgram(pid_t launcher);

// Exit code of mtmc-sandbox when it could not start the program.
inline constexpr int kLauncherFailed = 125;

}  // namespace mtmc::worker
