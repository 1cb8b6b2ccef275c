// SPDX-License-Identifier: Apache-2.0
#include "client/cli/watch.h"

#include <grpcpp/grpcpp.h>

#include <catch2/catch.hpp>
#include <memory>
#include <sstream>
#include <vector>

#include "absl/time/clock.h"
#include "common/rpc/error.h"
#include "common/rpc/server.h"
#include "common/rpc/status.h"
#include "common/testing/status_matchers.h"
#include "mtmc/v1/job.grpc.pb.h"

namespace mtmc::client {
namespace {

using testing::IsOk;
using testing::StatusIs;

// Refuses watches as often as it is told; the next one sees the job's end.
class Jobs final : public v1::JobService::Service {
 public:
  int refusals = 0;
  absl::Status refusal;
  std::vector<absl::Time> calls;

  grpc::Status WatchJob(grpc::ServerContext*, const v1::WatchJobRequest*,
                        grpc::ServerWriter<v1::WatchJobResponse>* writer) override {
    calls.push_back(absl::Now());
    if (refusals-- > 0) return rpc::ToGrpc(refusal);
    v1::WatchJobResponse response;
    response.mutable_event()->set_sequence(1);
    response.mutable_event()->mutable_job()->set_state(v1::Job::STATE_SUCCEEDED);
    writer->Write(response);
    return grpc::Status::OK;
  }
};

// A watch of a job that `jobs` has.
absl::Status Follow(v1::JobService::Service& jobs) {
  auto server = rpc::RpcServer::Create({.address = "127.0.0.1:0", .services = {&jobs}});
  REQUIRE_THAT(server.status(), IsOk());
  Session session;
  session.api = std::make_unique<Api>((*server)->address());
  std::ostringstream out;
  JobView view(out, /*is_live=*/false);
  return FollowJob(session, "projects/p/jobs/j", view, absl::Minutes(1));
}

TEST_CASE("A watch that is refused begins again when the coordinator says", "[cli]") {
  Jobs jobs;
  jobs.refusals = 2;
  // Longer than the first pauses of its own.
  constexpr absl::Duration kAsked = absl::Milliseconds(700);
  jobs.refusal = rpc::WithRetryDelay(
      rpc::MakeError(absl::StatusCode::kResourceExhausted, "REQUEST_RATE_EXCEEDED", "too often"),
      kAsked);

  CHECK_THAT(Follow(jobs), IsOk());

  REQUIRE(jobs.calls.size() == 3);
  for (size_t i = 1; i < jobs.calls.size(); ++i) CHECK(jobs.calls[i] - jobs.calls[i - 1] >= kAsked);
}

// A log that loses its events 1 to 5 when they have been read, and has another end.
class RestoredJobs final : public v1::JobService::Service {
 public:
  std::vector<int64_t> cursors;

  grpc::Status WatchJob(grpc::ServerContext*, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::WatchJobResponse>* writer) override {
    cursors.push_back(request->cursor());
    if (request->cursor() > 0) {
      return rpc::ToGrpc(rpc::MakeError(absl::StatusCode::kOutOfRange, "CURSOR_EXPIRED", "lost"));
    }
    v1::WatchJobResponse response;
    response.mutable_event()->set_sequence(cursors.size() == 1 ? 5 : 1);
    response.mutable_event()->mutable_job()->set_state(
        cursors.size() == 1 ? v1::Job::STATE_RUNNING : v1::Job::STATE_SUCCEEDED);
    writer->Write(response);
    return grpc::Status::OK;
  }
};

TEST_CASE("A watch of a job that came back from a backup begins anew", "[cli]") {
  RestoredJobs jobs;

  CHECK_THAT(Follow(jobs), IsOk());

  CHECK(jobs.cursors == std::vector<int64_t>{0, 5, 0});
}

TEST_CASE("A watch of a job that is not there ends at once", "[cli]") {
  Jobs jobs;
  jobs.refusals = 1;
  jobs.refusal = rpc::MakeError(absl::StatusCode::kNotFound, "JOB_NOT_FOUND", "no");

  CHECK_THAT(Follow(jobs), StatusIs(absl::StatusCode::kNotFound));
  CHECK(jobs.calls.size() == 1);
}

}  // namespace
}  // namespace mtmc::client
