// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/fault.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mtmc::fault {
namespace {

using Act = Fault::Act;

constexpr std::array<std::pair<Act, std::string_view>, 13> kNames = {{
    {Act::kHang, "hang"},
    {Act::kSpin, "spin"},
    {Act::kStop, "stop"},
    {Act::kFork, "fork"},
    {Act::kCrash, "crash"},
    {Act::kExit, "exit"},
    {Act::kKill, "kill"},
    {Act::kFlood, "flood"},
    {Act::kFloodCrash, "flood_crash"},
    {Act::kGarbage, "garbage"},
    {Act::kMute, "mute"},
    {Act::kMemory, "memory"},
    {Act::kContextLost, "context_lost"},
}};

// Beside the daemon, as kChannelFd.
constexpr int kChannel = 3;

// Many times what a pipe holds.
constexpr int kFloodLines = 5'000;

// Enough to see that all are gone, few enough for a shared machine.
constexpr int kForks = 30;

[[noreturn]] void Hang() {
  while (true) pause();
}

void Print(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count <= 0) return;
    text.remove_prefix(static_cast<size_t>(count));
  }
}

void Flood() {
  const std::string line = std::string(200, 'x') + "\n";
  for (int i = 0; i < kFloodLines; ++i) Print(i % 2 == 0 ? STDOUT_FILENO : STDERR_FILENO, line);
  Print(STDERR_FILENO, "the last words\n");
}

[[noreturn]] void FillGroup() {
  for (int i = 0; i < kForks; ++i) {
    if (fork() == 0) Hang();
  }
  Hang();
}

[[noreturn]] void TakeMemory() {
  constexpr size_t kPiece = size_t{8} << 20;
  while (true) {
    void* piece = mmap(nullptr, kPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (piece == MAP_FAILED) Hang();
    std::memset(piece, 1, kPiece);
    // Slower than a watch that looks ten times a second, so that a test needs
    // little of the machine.
    usleep(2'000);
  }
}

[[noreturn]] void Die(int number) {
  std::signal(number, SIG_DFL);
  raise(number);
  _exit(1);
}

}  // namespace

std::string ToText(const Fault& fault) {
  for (const auto& [act, name] : kNames) {
    if (act == fault.act) return absl::StrCat(fault.moment, " ", std::string(name));
  }
  return fault.moment;
}

std::optional<Fault> FindFault(const std::string& text) {
  constexpr std::string_view kMark = "// fault:";
  const size_t mark = text.find(kMark);
  const size_t begin = text.find_first_not_of(' ', mark == text.npos ? 0 : mark + kMark.size());
  const size_t space = text.find(' ', begin == text.npos ? text.size() : begin);
  if (space == text.npos) return std::nullopt;
  const std::string word = text.substr(space + 1, text.find_first_of(" \n", space + 1) - space - 1);
  for (const auto& [act, name] : kNames) {
    if (name == word) return Fault{.moment = text.substr(begin, space - begin), .act = act};
  }
  return std::nullopt;
}

void Commit(Act act) {
  switch (act) {
    case Act::kHang:
      Hang();
    case Act::kSpin:
      for (volatile bool goes_on = true; goes_on;) continue;
      return;
    case Act::kStop:
      raise(SIGSTOP);
      Hang();
    case Act::kFork:
      FillGroup();
    case Act::kCrash:
      Die(SIGSEGV);
    case Act::kExit:
      _exit(3);
    case Act::kKill:
      Die(SIGKILL);
    case Act::kFlood:
      return Flood();
    case Act::kFloodCrash:
      Flood();
      Die(SIGSEGV);
    case Act::kGarbage:
      Print(kChannel, std::string(64, '\xff'));
      Hang();
    case Act::kMute:
      close(kChannel);
      Hang();
    case Act::kMemory:
      TakeMemory();
    case Act::kContextLost:
      return;
  }
}

}  // namespace mtmc::fault
