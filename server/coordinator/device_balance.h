// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "mtmc/v1/device.pb.h"

namespace mtmc::coordinator {

// Which class of devices (fleet::DeviceClass) a job goes to that may go to several. A job
// stays with its class, so that classes share the jobs by their numbers of workers; where some
// have idle workers, those come first. A thread-compatible object.
class DeviceBalance {
 public:
  // Workers of one class that may serve the job.
  struct Class {
    v1::DeviceFacts device;
    v1::Dialect dialect = v1::DIALECT_UNSPECIFIED;
    int num_workers = 0;
    int num_idle = 0;
  };

  // The class for the next job; it counts from now on. Classes with CUDA come before others.
  // Null where there is none.
  const Class* Choose(const std::vector<Class>& classes);

  // The fleet is another one: what was chosen before says nothing of it.
  void Forget() { chosen_.clear(); }

 private:
  // Jobs that each class got, by its text.
  std::map<std::string, int> chosen_;
};

}  // namespace mtmc::coordinator
