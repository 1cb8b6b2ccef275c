// SPDX-License-Identifier: Apache-2.0

// Any bytes may come as method, target and body, a line each.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "common/rest/transcoder.h"
#include "google/protobuf/message.h"
#include "mtmc/v1/artifact.pb.h"
#include "mtmc/v1/candidate.pb.h"
#include "mtmc/v1/job.pb.h"
#include "mtmc/v1/worker.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using mtmc::rest::Transcoder;
  mtmc::v1::Job::descriptor();
  mtmc::v1::Candidate::descriptor();
  mtmc::v1::Worker::descriptor();
  mtmc::v1::FindMissingArtifactsRequest::descriptor();
  static const auto transcoder =
      Transcoder::Make({"mtmc.v1.JobService", "mtmc.v1.CandidateService", "mtmc.v1.WorkerService",
                        "mtmc.v1.ArtifactService"});
  if (!transcoder.ok()) std::abort();
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::size_t first = text.find('\n');
  if (first == text.npos) return 0;
  const std::size_t second = text.find('\n', first + 1);
  if (second == text.npos) return 0;
  const auto call = transcoder->Transcode(
      text.substr(0, first), text.substr(first + 1, second - first - 1), text.substr(second + 1));
  if (call.ok() && call->request == nullptr) std::abort();
  return 0;
}
