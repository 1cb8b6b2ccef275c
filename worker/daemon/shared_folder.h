// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace mtmc::worker {

// Folder through which the children of one worker share tensors: in memory if
// the host allows, otherwise within the scratch folder. Emptied at both ends of
// its life, and named after the scratch folder, so that a worker clears what its
// killed predecessor left.
class SharedFolder {
 public:
  explicit SharedFolder(const std::string& scratch);
  ~SharedFolder();

  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

  // Made by who first writes into it.
  const std::string& path() const { return path_; }

 private:
  void Clear() const;

  const std::string path_;
};

}  // namespace mtmc::worker
