// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mtmc/v1/action.pb.h"
#include "mtmc/v1/job.pb.h"
#include "mtmc/v1/record.pb.h"
#include "server/search/lineage.h"

namespace mtmc::search {

// What a job leaves to later ones, and what it has from earlier ones. A part of a network is
// found again by what it computes, whatever the network and the names; the same part
// of other layers too.

// `projects/{project}` of a job.
std::string ProjectOf(const v1::Job& job);

// The fastest kernels of each part that are faster than the start candidate's, with the names
// that their project gives them. Without time.
std::vector<v1::TunedRecord> LearnRecords(const v1::Job& job, const Lineage& lineage);

// What the start candidate of a job may take of records. The job outlives it.
class Recall {
 public:
  Recall(const v1::Job& job, const v1::Candidate& start);
  ~Recall();

  // By what to look up the records (RecordAnchor), each once; none where the candidate has no
  // schedule.
  std::vector<std::string> Anchors() const;

  // The step to the program that wears what `records` know, those first that save most;
  // argument `records` names them, a line each. Absent where nothing fits.
  std::optional<v1::Action> Step(const std::vector<v1::TunedRecord>& records) const;

 private:
  struct Parts;

  const v1::Job& job_;
  // Null where there is no schedule, or the graph cannot be read.
  std::unique_ptr<const Parts> parts_;
};

// Names of the records that `lineage` tried in a program that turned out wrong or could not be
// made. What may be the host's fault blames none.
std::vector<std::string> RefutedRecords(const Lineage& lineage);

}  // namespace mtmc::search
