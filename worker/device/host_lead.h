// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace mtmc::worker {

// How often the cache is flushed before a timed part: the host enqueues the part while
// that runs, and must be done before the device begins, or the device waits for the host
// and the time is that of both.
//
//   for (int i = 0; i < lead.passes(); ++i) flush();
//   ...                                       // enqueue the timed part
//   const bool is_dropped = lead.Note(has_begun);
//
// One late sample may be the host's scheduler; two in a row give half as many passes more.
// Thread-compatible.
class HostLead {
 public:
  // Eight flushes of an H200 take half a millisecond; who needs more is timed as it is.
  static constexpr int kMostPasses = 8;

  int passes() const { return passes_; }

  // Takes down whether the device had begun before everything was enqueued. True when
  // the sample says nothing of the device and more passes can help.
  bool Note(bool is_late);

  // Of another program.
  void Reset();

 private:
  int passes_ = 1;
  bool was_late_ = false;
};

}  // namespace mtmc::worker
