// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace mtmc::base {

// Owns a file descriptor and closes it. Move-only.
class UniqueFd {
 public:
  UniqueFd() = default;

  explicit UniqueFd(int fd) : fd_(fd) {}

  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}

  UniqueFd& operator=(UniqueFd&& other) noexcept;

  ~UniqueFd() { reset(); }

  bool is_open() const { return fd_ >= 0; }

  int get() const { return fd_; }

  // Gives up ownership.
  int release() { return std::exchange(fd_, -1); }

  // Closes the descriptor now.
  void reset();

 private:
  int fd_ = -1;
};

}  // namespace mtmc::base
