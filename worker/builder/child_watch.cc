// SPDX-License-Identifier: Apache-2.0
#include "worker/builder/child_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "worker/builder/resident_memory.h"

namespace mtmc::worker {
namespace {

// Kept of each stream.
constexpr size_t kTailBytes = size_t{64} << 10;

// Shown of each stream: what a dead process has to say is at the end.
constexpr size_t kShownBytes = size_t{8} << 10;

// Between two looks a process takes less than 1 GB: it must touch every page.
constexpr absl::Duration kMemoryInterval = absl::Milliseconds(100);

// Reads of a whole pipe at the end; a grandchild may go on printing.
constexpr int kLastReads = 4;

}  // namespace

ChildWatch::ChildWatch(std::vector<base::UniqueFd> streams, Options options)
    : options_(std::move(options)), stop_event_(::eventfd(0, EFD_CLOEXEC)) {
  MTMC_CHECK(stop_event_.is_open());
  for (base::UniqueFd& fd : streams) {
    ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
    streams_.push_back({.fd = std::move(fd), .tail = {}});
  }
  thread_ = std::thread([this] { Run(); });
}

ChildWatch::~ChildWatch() { Stop(); }

void ChildWatch::Stop() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  MTMC_CHECK(::write(stop_event_.get(), &one, sizeof one) == sizeof one);
  thread_.join();
  for (Stream& stream : streams_) {
    for (int i = 0; i < kLastReads && Drain(stream); ++i) continue;
    stream.fd.reset();
  }
}

std::string ChildWatch::Text() const {
  std::string text;
  for (const Stream& stream : streams_) {
    text += stream.tail.substr(stream.tail.size() - std::min(stream.tail.size(), kShownBytes));
  }
  return text;
}

void ChildWatch::Run() {
  const bool has_limit = options_.max_resident_bytes > 0;
  absl::Time next_look = absl::Now() + kMemoryInterval;
  while (true) {
    std::vector<pollfd> entries = {{.fd = stop_event_.get(), .events = POLLIN, .revents = 0}};
    // poll() skips a closed stream, whose descriptor is -1.
    for (const Stream& stream : streams_) {
      entries.push_back({.fd = stream.fd.get(), .events = POLLIN, .revents = 0});
    }
    const int wait_ms = has_limit
                            ? static_cast<int>(absl::ToInt64Milliseconds(std::clamp(
                                  next_look - absl::Now(), absl::ZeroDuration(), kMemoryInterval)))
                            : -1;
    ::poll(entries.data(), entries.size(), wait_ms);
    if (entries[0].revents != 0) return;
    for (size_t i = 0; i < streams_.size(); ++i) {
      if (entries[i + 1].revents != 0) Drain(streams_[i]);
    }
    if (!has_limit || absl::Now() < next_look) continue;
    CheckMemory();
    next_look = absl::Now() + kMemoryInterval;
  }
}

// Whether there may be more. Closes a stream at its end.
bool ChildWatch::Drain(Stream& stream) {
  std::array<char, kTailBytes> buffer;
  if (!stream.fd.is_open()) return false;
  const ssize_t count = ::read(stream.fd.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (count <= 0) {
    stream.fd.reset();
    return false;
  }
  stream.tail.append(buffer.data(), static_cast<size_t>(count));
  if (stream.tail.size() > kTailBytes) stream.tail.erase(0, stream.tail.size() - kTailBytes);
  return true;
}

void ChildWatch::CheckMemory() {
  if (exceeded_bytes_.load() > 0) return;
  const int64_t bytes = ResidentBytesOfTree(options_.process);
  if (bytes <= options_.max_resident_bytes) return;
  exceeded_bytes_ = bytes;
  options_.kill();
}

}  // namespace mtmc::worker
