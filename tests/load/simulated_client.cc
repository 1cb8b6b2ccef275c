// SPDX-License-Identifier: Apache-2.0
#include "tests/load/simulated_client.h"

#include <grpcpp/grpcpp.h>

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/id.h"
#include "common/rpc/status.h"
#include "tests/load/pacer.h"
#include "tests/load/tally.h"
#include "tests/load/turns.h"

namespace mtmc::load {
namespace {

constexpr absl::Duration kRetry = absl::Milliseconds(200);

bool IsFinished(const v1::Candidate& candidate) {
  return candidate.state() != v1::Candidate::STATE_PENDING &&
         candidate.state() != v1::Candidate::STATE_RUNNING;
}

}  // namespace

struct SimulatedClient::Upload final : grpc::ClientWriteReactor<v1::UploadArtifactRequest> {
  grpc::ClientContext context;
  v1::UploadArtifactRequest request;
  v1::UploadArtifactResponse response;
  std::function<void(absl::Status)> done;

  void OnDone(const grpc::Status& status) override {
    const std::unique_ptr<Upload> self(this);
    done(rpc::FromGrpc(status));
  }
};

struct SimulatedClient::Creation {
  grpc::ClientContext context;
  v1::CreateJobResponse response;
};

// One stream after another from the cursor, until the job has ended.
class SimulatedClient::Watch {
 public:
  Watch(SimulatedClient& client, std::string job, bool is_first)
      : client_(client), job_(std::move(job)), is_first_(is_first) {}

  void Begin() {
    auto* stream = new Stream(*this);
    if (!client_.field_.calls.Add(stream->context)) {
      delete stream;
      return;
    }
    stream->request.set_name(job_);
    stream->request.set_cursor(cursor_);
    client_.jobs_->async()->WatchJob(&stream->context, &stream->request, stream);
    stream->StartRead(&stream->response);
    stream->StartCall();
  }

 private:
  struct Stream final : grpc::ClientReadReactor<v1::WatchJobResponse> {
    explicit Stream(Watch& watch_in) : watch(watch_in) {}

    Watch& watch;
    grpc::ClientContext context;
    v1::WatchJobRequest request;
    v1::WatchJobResponse response;

    void OnReadDone(bool is_ok) override {
      if (!is_ok) return;
      watch.Take(response.event());
      StartRead(&response);
    }

    void OnDone(const grpc::Status& status) override {
      const std::unique_ptr<Stream> self(this);
      CallSet& calls = watch.client_.field_.calls;
      watch.OnEnd(rpc::FromGrpc(status));
      calls.Remove(context);
    }
  };

  void Take(const v1::JobEvent& event) {
    Tally& tally = client_.field_.tally;
    tally.NoteEvent(event, event.sequence() == cursor_ + 1, is_first_);
    cursor_ = event.sequence();
    if (!event.has_candidate() || !IsFinished(event.candidate())) return;
    if (!finished_.insert(event.candidate().trial()).second) tally.NoteFinishedTwice();
  }

  void OnEnd(const absl::Status& status) {
    if (status.ok()) return client_.OnWatchEnd();
    if (client_.Retries(status)) client_.field_.pacer.After(kRetry, [this] { Begin(); });
  }

  SimulatedClient& client_;
  const std::string job_;
  const bool is_first_;
  int64_t cursor_ = 0;
  std::set<int> finished_;
};

SimulatedClient::SimulatedClient(const Field& field, const std::shared_ptr<grpc::Channel>& channel,
                                 const Options& options, Turns& turns)
    : field_(field),
      options_(options),
      turns_(turns),
      artifacts_(v1::ArtifactService::NewStub(channel)),
      jobs_(v1::JobService::NewStub(channel)) {}

SimulatedClient::~SimulatedClient() = default;

bool SimulatedClient::Retries(const absl::Status& status) {
  if (absl::IsCancelled(status)) return false;
  const bool is_away = IsPassing(status);
  is_away ? field_.tally.NoteBreak() : field_.tally.NoteError(status);
  return is_away;
}

void SimulatedClient::Start() {
  turns_.Take([this] {
    // Its own, so that no evaluation of another job answers for it.
    source_ = absl::StrCat("# mtmc-load ", options_.seed, " ", options_.number, " ", num_jobs_++,
                           "\nclass Model: pass\n");
    UploadProblem();
  });
}

void SimulatedClient::UploadProblem() {
  auto* upload = new Upload();
  v1::Digest& digest = *upload->request.mutable_digest();
  digest.set_sha256(base::Sha256(source_).sha256_hex);
  digest.set_size_bytes(static_cast<int64_t>(source_.size()));
  upload->request.set_chunk(source_);
  request_.Clear();
  request_.set_parent("projects/load");
  request_.set_request_id(base::MakeUuid4());
  v1::Job& job = *request_.mutable_job();
  *job.mutable_problem()->mutable_source() = digest;
  job.mutable_problem()->set_display_name("load");
  job.mutable_search()->set_seed(options_.seed + options_.number);
  job.mutable_search()->set_speed_of_light_ratio(10);
  if (options_.is_random) job.mutable_search()->mutable_random();
  job.mutable_budget()->set_max_trials(options_.trials);
  if (!field_.calls.Add(upload->context)) {
    delete upload;
    return;
  }
  upload->done = [this, upload](const absl::Status& status) {
    if (status.ok()) {
      CreateJob();
    } else if (Retries(status)) {
      field_.pacer.After(kRetry, [this] { UploadProblem(); });
    }
    field_.calls.Remove(upload->context);
  };
  artifacts_->async()->UploadArtifact(&upload->context, &upload->response, upload);
  upload->StartWriteLast(&upload->request, grpc::WriteOptions());
  upload->StartCall();
}

void SimulatedClient::CreateJob() {
  auto creation = std::make_shared<Creation>();
  if (!field_.calls.Add(creation->context)) return;
  jobs_->async()->CreateJob(&creation->context, &request_, &creation->response,
                            [this, creation](const grpc::Status& grpc_status) {
                              const absl::Status status = rpc::FromGrpc(grpc_status);
                              if (status.ok()) {
                                WatchJob(creation->response.job().name());
                              } else if (Retries(status)) {
                                // The same request id: it may have been created.
                                field_.pacer.After(kRetry, [this] { CreateJob(); });
                              }
                              field_.calls.Remove(creation->context);
                            });
}

void SimulatedClient::WatchJob(const std::string& name) {
  turns_.End();
  if (num_jobs_ == 1) options_.on_first_job();
  open_watches_ = options_.watchers;
  watches_.clear();
  for (int i = 0; i < options_.watchers; ++i) {
    watches_.push_back(std::make_shared<Watch>(*this, name, i == 0));
  }
  const std::vector<std::shared_ptr<Watch>> watches = watches_;
  for (const auto& watch : watches) watch->Begin();
}

void SimulatedClient::OnWatchEnd() {
  if (open_watches_.fetch_sub(1) > 1) return;
  field_.tally.NoteJobEnd();
  Start();
}

}  // namespace mtmc::load
