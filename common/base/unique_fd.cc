// SPDX-License-Identifier: Apache-2.0
#include "common/base/unique_fd.h"

#include <unistd.h>

namespace mtmc::base {

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

void UniqueFd::reset() {
  // On Linux the descriptor is gone even when close() reports EINTR.
  if (is_open()) ::close(release());
}

}  // namespace mtmc::base
