// SPDX-License-Identifier: Apache-2.0
#include "common/rest/transcoder.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/rpc/error.h"
#include "common/testing/proto_matchers.h"
#include "common/testing/status_matchers.h"
#include "google/protobuf/descriptor.h"
#include "mtmc/v1/artifact.pb.h"
#include "mtmc/v1/candidate.pb.h"
#include "mtmc/v1/job.pb.h"
#include "mtmc/v1/worker.pb.h"

namespace mtmc::rest {
namespace {

using Catch::Matchers::Contains;
using testing::IsOk;

const Transcoder& All() {
  // Proto files are registered once something of them is used.
  v1::Job::descriptor();
  v1::Candidate::descriptor();
  v1::Worker::descriptor();
  v1::FindMissingArtifactsRequest::descriptor();
  static const auto transcoder =
      *Transcoder::Make({"mtmc.v1.JobService", "mtmc.v1.CandidateService", "mtmc.v1.WorkerService",
                         "mtmc.v1.ArtifactService"});
  return transcoder;
}

template <typename Request>
Request Transcoded(const std::string& method, const std::string& target,
                   const std::string& body = "") {
  const auto call = All().Transcode(method, target, body);
  REQUIRE_THAT(call.status(), IsOk());
  REQUIRE(call->request->GetDescriptor() == Request::descriptor());
  return static_cast<const Request&>(*call->request);
}

std::string Reason(const std::string& method, const std::string& target,
                   const std::string& body = "") {
  const auto call = All().Transcode(method, target, body);
  REQUIRE_FALSE(call.ok());
  return rpc::ErrorReason(call.status());
}

TEST_CASE("Path, query and body fill one request", "[rest]") {
  const auto request = Transcoded<v1::CreateJobRequest>(
      "POST", "/v1/projects/p/jobs?job_id=first&validate_only=true",
      R"({"problem": {"seed": 7, "display_name": "x"}, "budget": {"max_wall_time": "90s"},
          "search": {"random": {"max_steps": 3}}})");

  CHECK(request.parent() == "projects/p");
  CHECK(request.job_id() == "first");
  CHECK(request.validate_only());
  CHECK(request.job().problem().seed() == 7);
  CHECK(request.job().budget().max_wall_time().seconds() == 90);
  CHECK(request.job().search().random().max_steps() == 3);
}

TEST_CASE("A query sets nested fields, enumerators and both spellings", "[rest]") {
  const auto list = Transcoded<v1::ListCandidatesRequest>(
      "GET",
      "/v1/projects/p/jobs/j/candidates?pageSize=3&view=CANDIDATE_VIEW_BASIC"
      "&filter=trial+%3E+2");

  CHECK(list.parent() == "projects/p/jobs/j");
  CHECK(list.page_size() == 3);
  CHECK(list.view() == v1::CANDIDATE_VIEW_BASIC);
  CHECK(list.filter() == "trial > 2");

  const auto download = Transcoded<v1::DownloadArtifactRequest>(
      "GET", "/v1/artifacts/abc?digest.size_bytes=12&offset=3");
  CHECK(download.digest().sha256() == "abc");
  CHECK(download.digest().size_bytes() == 12);
  CHECK(download.offset() == 3);
}

TEST_CASE("Where the path names a field, a body or query does not change it", "[rest]") {
  const auto request = Transcoded<v1::CancelJobRequest>("POST", "/v1/projects/p/jobs/j:cancel",
                                                        R"({"name": "projects/q/jobs/k"})");

  CHECK(request.name() == "projects/p/jobs/j");
}

TEST_CASE("One path serves several HTTP methods", "[rest]") {
  const char* path = "/v1/projects/p/jobs/j";

  CHECK(Transcoded<v1::GetJobRequest>("GET", path).name() == "projects/p/jobs/j");
  CHECK(Transcoded<v1::DeleteJobRequest>("DELETE", path).name() == "projects/p/jobs/j");
  CHECK(Reason("POST", path) == "METHOD_NOT_ALLOWED");
}

TEST_CASE("What is wrong has its reason", "[rest]") {
  CHECK(Reason("GET", "/v1/nothing") == "PATH_NOT_FOUND");
  CHECK(Reason("DELETE", "/v1/workers") == "METHOD_NOT_ALLOWED");
  CHECK(Reason("POST", "/v1/projects/p/jobs", "{") == "INVALID_JSON");
  CHECK(Reason("POST", "/v1/projects/p/jobs", "[]") == "INVALID_JSON");
  CHECK(Reason("POST", "/v1/projects/p/jobs", R"({"speed": 1})") == "INVALID_JSON");
  CHECK(Reason("POST", "/v1/projects/p/jobs", std::string(10'000, '[')) == "INVALID_JSON");
  CHECK(Reason("GET", "/v1/workers", "{}") == "INVALID_JSON");
  CHECK(Reason("GET", "/v1/workers?colour=red") == "INVALID_QUERY");
  CHECK(Reason("GET", "/v1/workers?page_size=%zz") == "INVALID_QUERY");
  CHECK(Reason("GET", "/v1/workers?page_size.x=1") == "INVALID_QUERY");
  CHECK(Reason("GET", "/v1/workers?page_size=many") == "INVALID_JSON");
}

TEST_CASE("A method without a rule is not served", "[rest]") {
  v1::SynchronizeRequest::descriptor();
  const auto transcoder = Transcoder::Make({"mtmc.v1.LeaseService"});

  REQUIRE_THAT(transcoder.status(), IsOk());
  CHECK_FALSE(transcoder->Transcode("POST", "/mtmc.v1.LeaseService/Synchronize", "{}").ok());
  CHECK_FALSE(Transcoder::Make({"mtmc.v1.NoService"}).ok());
}

// A request with random values, and the URL that asks for it.
TEST_CASE("Drawn requests come through a query as they were", "[rest]") {
  std::mt19937 random(Catch::rngSeed());
  const std::string letters = "aZ09 _-.~%&=+?/:*\"'\\é<>#";
  for (int i = 0; i < 300; ++i) {
    v1::ListJobsRequest wanted;
    wanted.set_parent("projects/p");
    wanted.set_page_size(static_cast<int>(random() % 1000));
    std::string filter;
    for (auto n = random() % 20; n > 0; --n) filter += letters[random() % letters.size()];
    // Bytes that are no UTF-8 cannot be in a string of a message.
    if (filter.find('\xc3') != filter.npos || filter.find('\xa9') != filter.npos) continue;
    wanted.set_filter(filter);
    std::string query = absl::StrCat("page_size=", wanted.page_size(), "&filter=");
    for (const char c : filter)
      absl::StrAppend(&query, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));

    const auto request =
        Transcoded<v1::ListJobsRequest>("GET", absl::StrCat("/v1/projects/p/jobs?", query));

    CHECK(request.filter() == wanted.filter());
    CHECK(request.page_size() == wanted.page_size());
  }
}

}  // namespace
}  // namespace mtmc::rest
