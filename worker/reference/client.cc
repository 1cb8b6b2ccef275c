// SPDX-License-Identifier: Apache-2.0
#include "worker/reference/client.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/subprocess.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"
#include "mtmc/pipe/v1/reference.pb.h"
#include "worker/builder/child_watch.h"
#include "worker/reference/response_line.h"

namespace mtmc::worker {
namespace {

// Longest answer: a graph of some thousand nodes is about 2 MB of JSON.
constexpr size_t kMaxLineBytes = size_t{256} << 20;

constexpr absl::Duration kPollSlice = absl::Milliseconds(50);

// All that PyTorch needs; above all no credentials.
const std::vector<std::string>& InheritedVariables() {
  static const auto& names = *new std::vector<std::string>{"PATH",
                                                           "HOME",
                                                           "LANG",
                                                           "LC_ALL",
                                                           "TMPDIR",
                                                           "LD_LIBRARY_PATH",
                                                           "CUDA_VISIBLE_DEVICES",
                                                           "CUDA_DEVICE_ORDER",
                                                           "OMP_NUM_THREADS",
                                                           "MKL_NUM_THREADS",
                                                           "VIRTUAL_ENV"};
  return names;
}

bool IsSameLoad(const pipe::v1::ReferenceRequest& a, const pipe::v1::ReferenceRequest& b) {
  return google::protobuf::util::MessageDifferencer::Equals(a.load(), b.load());
}

using Ending = Reply<pipe::v1::ReferenceResponse>::Ending;

}  // namespace

// One interpreter with the pipes to it.
class ReferenceClient::Process {
 public:
  // With `rehearses`, it gets ready for a first problem before it answers.
  static absl::StatusOr<std::unique_ptr<Process>> Start(const Options& options, bool rehearses) {
    std::filesystem::create_directories(options.scratch);
    base::SubprocessOptions start;
    start.argv = {options.python, "-m", "mtmc_reference", "--scratch", options.scratch};
    if (rehearses && !options.device.empty()) {
      start.argv.insert(start.argv.end(), {"--rehearse", options.device});
    }
    start.inherited_variables = InheritedVariables();
    start.variables = {{"PYTHONPATH", options.package_folder},
                       {"PYTHONUNBUFFERED", "1"},
                       {"PYTHONDONTWRITEBYTECODE", "1"},
                       {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}};
    if (!options.bytecode_folder.empty()) {
      start.variables["PYTHONPYCACHEPREFIX"] = options.bytecode_folder;
    }
    start.working_folder = options.scratch;
    start.standard_input = base::Stdio::Pipe();
    start.standard_output = base::Stdio::Pipe();
    start.standard_error = base::Stdio::Pipe();
    if (options.confinement) MTMC_RETURN_IF_ERROR(Confine(*options.confinement, start));
    MTMC_ASSIGN_OR_RETURN(base::Subprocess process, base::Subprocess::Start(start));
    for (base::UniqueFd* fd : {&process.standard_input(), &process.standard_output()}) {
      ::fcntl(fd->get(), F_SETFL, ::fcntl(fd->get(), F_GETFL) | O_NONBLOCK);
    }
    return std::unique_ptr<Process>(new Process(std::move(process), options.max_resident_bytes));
  }

  // Sends `line` and waits for one line. The process is unusable after any
  // ending but kAnswered.
  std::pair<Ending, std::string> Exchange(std::string line, absl::Time deadline,
                                          const std::function<bool()>& is_cancelled) {
    line.push_back('\n');
    size_t sent = 0;
    while (sent < line.size()) {
      const ssize_t count =
          ::write(process_.standard_input().get(), line.data() + sent, line.size() - sent);
      if (count > 0) {
        sent += static_cast<size_t>(count);
      } else if (count < 0 && errno != EAGAIN && errno != EINTR) {
        return {Ending::kDied, ""};
      } else if (auto ending =
                     Await(process_.standard_input().get(), POLLOUT, deadline, is_cancelled)) {
        return {*ending, ""};
      }
    }
    while (true) {
      const size_t end = received_.find('\n');
      if (end != std::string::npos) {
        std::string answer = received_.substr(0, end);
        received_.erase(0, end + 1);
        return {Ending::kAnswered, std::move(answer)};
      }
      if (received_.size() > kMaxLineBytes) return {Ending::kDied, ""};
      char buffer[1 << 16];
      const ssize_t count = ::read(process_.standard_output().get(), buffer, sizeof(buffer));
      if (count > 0) {
        received_.append(buffer, static_cast<size_t>(count));
      } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
        return {Ending::kDied, ""};
      } else if (auto ending =
                     Await(process_.standard_output().get(), POLLIN, deadline, is_cancelled)) {
        return {*ending, ""};
      }
    }
  }

  int64_t number() const { return process_.number(); }

  // Ends the process and tells how it ended, with the end of its log.
  std::string Bury() {
    process_.Kill();
    const auto reason = process_.Wait(absl::Now() + absl::Seconds(10));
    watch_.Stop();
    const std::string end =
        watch_.exceeded_bytes() > 0
            ? absl::StrCat("killed because it held ", watch_.exceeded_bytes() >> 20,
                           " MiB of the host's memory")
            : (reason.ok() ? reason->ToString() : "still running");
    return absl::StrCat(end, "\n", watch_.Text());
  }

 private:
  Process(base::Subprocess process, int64_t max_resident_bytes)
      : process_(std::move(process)),
        watch_(Streams(process_), {.process = process_.pid(),
                                   .max_resident_bytes = max_resident_bytes,
                                   .kill = [this] { process_.Kill(); }}) {}

  static std::vector<base::UniqueFd> Streams(base::Subprocess& process) {
    std::vector<base::UniqueFd> streams;
    streams.push_back(std::move(process.standard_error()));
    return streams;
  }

  // Absent when `fd` is ready.
  std::optional<Ending> Await(int fd, short events, absl::Time deadline,
                              const std::function<bool()>& is_cancelled) {
    while (true) {
      if (is_cancelled()) return Ending::kCancelled;
      const absl::Duration left = deadline - absl::Now();
      if (left <= absl::ZeroDuration()) return Ending::kTimedOut;
      pollfd waiting{.fd = fd, .events = events, .revents = 0};
      const auto slice = static_cast<int>(absl::ToInt64Milliseconds(std::min(left, kPollSlice)));
      if (::poll(&waiting, 1, std::max(slice, 1)) > 0) return std::nullopt;
    }
  }

  base::Subprocess process_;
  ChildWatch watch_;
  std::string received_;
};

ReferenceClient::ReferenceClient(Options options) : options_(std::move(options)) {}

ReferenceClient::~ReferenceClient() = default;

void ReferenceClient::Warm() {
  Reply<pipe::v1::ReferenceResponse> ignored;
  EnsureProcess(ignored, /*rehearses=*/true);
}

void ReferenceClient::PrepareRest() {
  if (!has_loaded_ || spare_) return;
  // What fails here is tried again when it is needed.
  if (auto started = Process::Start(options_, /*rehearses=*/true); started.ok()) {
    spare_ = *std::move(started);
  }
}

void ReferenceClient::Rest() {
  if (!has_loaded_) return;
  UseSpare();
  Warm();
}

void ReferenceClient::End() {
  spare_.reset();
  UseSpare();
}

void ReferenceClient::UseSpare() {
  process_ = std::move(spare_);
  has_loaded_ = false;
}

bool ReferenceClient::EnsureProcess(Reply<pipe::v1::ReferenceResponse>& reply, bool rehearses) {
  if (process_) return true;
  auto started = Process::Start(options_, rehearses);
  if (started.ok()) {
    process_ = *std::move(started);
    return true;
  }
  reply.ending = Ending::kDied;
  reply.detail = absl::StrCat("could not be started: ", started.status().message());
  return false;
}

Reply<pipe::v1::ReferenceResponse> ReferenceClient::Call(const pipe::v1::ReferenceRequest& request,
                                                         absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  Reply<pipe::v1::ReferenceResponse> reply;
  if (request.has_load()) {
    if (has_loaded_ && IsSameLoad(*load_, request)) {
      reply.ending = Ending::kAnswered;
      reply.response = *loaded_;
      return reply;
    }
    load_.reset();
    has_loaded_ = false;
    reply = Exchange(request, deadline);
    if (reply.is_answered() && !reply.response.has_failure()) {
      // A process whose last answer this was has nothing loaded any more.
      has_loaded_ = process_ != nullptr;
      load_ = std::make_unique<pipe::v1::ReferenceRequest>(request);
      loaded_ = std::make_unique<pipe::v1::ReferenceResponse>(reply.response);
    }
    return reply;
  }
  if (!has_loaded_ && load_) {
    reply = Exchange(*load_, deadline);
    if (!reply.is_answered() || reply.response.has_failure()) return reply;
    has_loaded_ = process_ != nullptr;
  }
  return Exchange(request, deadline);
}

Reply<pipe::v1::ReferenceResponse> ReferenceClient::Exchange(
    const pipe::v1::ReferenceRequest& request, absl::Time deadline) {
  Reply<pipe::v1::ReferenceResponse> reply;
  // What a rehearsal would do, this request does itself.
  if (!EnsureProcess(reply, /*rehearses=*/false)) return reply;
  pipe::v1::ReferenceRequest numbered = request;
  numbered.set_sequence(++sequence_);
  std::string line;
  google::protobuf::util::JsonPrintOptions print;
  print.always_print_primitive_fields = true;
  // Only a message with invalid UTF-8 cannot be printed, and ours has none.
  MTMC_CHECK(google::protobuf::util::MessageToJsonString(numbered, &line, print).ok());

  auto [ending, answer] = process_->Exchange(std::move(line), deadline, options_.is_cancelled);
  reply.ending = ending;
  reply.process = process_->number();
  std::string reason;
  if (ending == Ending::kAnswered) {
    auto response = ParseResponseLine(answer, sequence_);
    if (response.ok()) {
      reply.response = *std::move(response);
      if (!reply.response.is_last()) return reply;
      reason = absl::StrCat(reply.response.failure().message(), "\n");
    } else {
      reason = absl::StrCat("answered what is not a response: ", response.status().message(), "\n");
    }
    // Of a load whose answer is the last, the problem is the first suspect.
    const bool is_load_answered = request.has_load() && reply.response.is_last();
    reply.ending = is_load_answered ? Ending::kAnswered : Ending::kDied;
  }
  reply.detail = absl::StrCat(reason, process_->Bury());
  UseSpare();
  base::Log(base::LogLevel::kWarning, "reference process ended", {{"detail", reply.detail}});
  // Nobody waits for an answer now: the next problem finds a process that is ready.
  if (reply.ending == Ending::kCancelled) Warm();
  return reply;
}

}  // namespace mtmc::worker
