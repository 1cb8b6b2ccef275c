// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/message_channel.h"
#include "common/base/subprocess.h"

namespace google::protobuf {
class MessageLite;
}

namespace mtmc::worker {

// Descriptor on which a child speaks with the daemon: one end of a socket pair,
// length-delimited messages both ways. Its standard output and error are text
// for people.
inline constexpr int kChannelFd = 3;

// A running builder or runner with the channel to it. The destructor kills its
// process group. Thread-compatible. Not movable: the owner holds it by pointer.
class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> argv;
    // Working folder, made if it is missing; the child's text goes to
    // `<scratch>/<name>.log`.
    std::string scratch;
    std::string name;
    // Asked every 50 ms while an exchange waits; true kills the process.
    std::function<bool()> is_cancelled = [] { return false; };
  };

  enum class Ending { kAnswered, kDied, kTimedOut, kCancelled };

  struct Answer {
    Ending ending = Ending::kDied;
    // How the process ended and the last lines it printed; empty when it lives.
    std::string detail;
  };

  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(Options options);

  // Sends `request` and waits for `response`. After any ending but kAnswered the
  // process is gone and this object may only be destroyed.
  Answer Exchange(const google::protobuf::MessageLite& request,
                  google::protobuf::MessageLite& response, absl::Time deadline);

  // Kills the group; how the process ended and the last lines it printed.
  std::string Bury();

 private:
  ChildProcess(Options options, base::Subprocess process, base::MessageChannel channel,
               std::string log);

  const Options options_;
  base::Subprocess process_;
  base::MessageChannel channel_;
  const std::string log_;
};

}  // namespace mtmc::worker
