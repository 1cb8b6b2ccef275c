// SPDX-License-Identifier: Apache-2.0
//
// Who may read which artifact, by calls of the services behind a guard.
#include "server/coordinator/artifact_access.h"

#include <grpcpp/grpcpp.h>

#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "common/access/guard.h"
#include "common/base/file.h"
#include "common/rpc/deadline.h"
#include "common/rpc/error.h"
#include "common/rpc/gate.h"
#include "common/rpc/server.h"
#include "common/rpc/status.h"
#include "common/testing/fake_clock.h"
#include "common/testing/status_matchers.h"
#include "mtmc/v1/artifact.grpc.pb.h"
#include "mtmc/v1/job.grpc.pb.h"
#include "server/coordinator/coordinator_fixture.h"
#include "server/coordinator/relay.h"
#include "server/coordinator/seat.h"
#include "server/coordinator/services.h"

namespace mtmc::coordinator {
namespace {

using access::Role;
using testing::IsOk;
using Names = std::set<std::string>;

constexpr char kSource[] = "class Model: pass";

// Who may do what, by their names.
const std::vector<std::pair<std::string, access::Grant>> kCallers = {
    {"p-viewer", {Role::kViewer, "p"}},
    {"p-submitter", {Role::kSubmitter, "p"}},
    {"p-administrator", {Role::kAdministrator, "p"}},
    {"q-viewer", {Role::kViewer, "q"}},
    {"q-submitter", {Role::kSubmitter, "q"}},
    {"q-administrator", {Role::kAdministrator, "q"}},
    {"both", {Role::kViewer, "p"}},
    {"both", {Role::kSubmitter, "q"}},
    {"all-viewer", {Role::kViewer, "*"}},
    {"all-submitter", {Role::kSubmitter, "*"}},
    {"root", {Role::kAdministrator, "*"}},
    {"machine", {Role::kWorker, "*"}},
};

const Names kReadersOfAll = {"all-viewer", "all-submitter", "root", "machine"};
const Names kReadersOfP = {"p-viewer",      "p-submitter", "p-administrator", "both", "all-viewer",
                           "all-submitter", "root",        "machine"};

Names Everybody() {
  Names names;
  for (const auto& [name, grant] : kCallers) names.insert(name);
  return names;
}

struct Options {
  bool is_shared = false;
  bool has_guard = true;
};

// A coordinator with a worker, whose services ask who calls.
struct Served {
  explicit Served(const Options& options = {}) : access(world.memory, options.is_shared) {
    world.shares_across_projects = options.is_shared;
    world.StartWithWorker();
    // The world's own.
    seat.SetLocal(std::shared_ptr<Coordinator>(std::shared_ptr<void>(), world.coordinator.get()));
    std::string lines;
    for (const auto& [name, grant] : kCallers) {
      lines += access::TokenLine(name, grant.role, grant.project, "mtmc_" + name) + "\n";
    }
    const std::string tokens = folder.path() / "tokens";
    REQUIRE_THAT(base::WriteFileAtomically(tokens, lines), IsOk());
    auto created = access::Guard::Create({.token_file = tokens}, clock);
    REQUIRE_THAT(created.status(), IsOk());
    guard = *std::move(created);
    rpc::RpcServer::Options serving{.services = {jobs.get(), artifacts.get()}};
    if (options.has_guard) {
      serving.services = {gated_jobs.get(), gated_artifacts.get()};
      serving.interceptors.push_back([this] { return rpc::MakeGateInterceptor(*guard); });
    }
    server = *rpc::RpcServer::Create(serving);
    const auto channel = server->MakeInProcessChannel();
    job_stub = v1::JobService::NewStub(channel);
    artifact_stub = v1::ArtifactService::NewStub(channel);
  }

  ~Served() {
    server->Shutdown(absl::InfiniteFuture());
    seat.SetRemote("");
  }

  static void Prepare(grpc::ClientContext& context, const std::string& who) {
    context.AddMetadata("authorization", "Bearer mtmc_" + who);
    rpc::SetDeadline(context, absl::Now() + kPatience);
  }

  // What `who` gets.
  absl::StatusOr<std::string> Download(const std::string& who, const v1::Digest& digest) {
    grpc::ClientContext context;
    Prepare(context, who);
    v1::DownloadArtifactRequest request;
    *request.mutable_digest() = digest;
    const auto stream = artifact_stub->DownloadArtifact(&context, request);
    std::string bytes;
    for (v1::DownloadArtifactResponse response; stream->Read(&response);) bytes += response.chunk();
    const absl::Status status = rpc::FromGrpc(stream->Finish());
    if (!status.ok()) return status;
    return bytes;
  }

  absl::Status Upload(const std::string& who, const std::string& bytes, const v1::Digest& digest) {
    grpc::ClientContext context;
    Prepare(context, who);
    v1::UploadArtifactResponse response;
    const auto stream = artifact_stub->UploadArtifact(&context, &response);
    v1::UploadArtifactRequest request;
    *request.mutable_digest() = digest;
    request.set_chunk(bytes);
    stream->Write(request);
    stream->WritesDone();
    return rpc::FromGrpc(stream->Finish());
  }

  bool IsMissing(const std::string& who, const v1::Digest& digest) {
    grpc::ClientContext context;
    Prepare(context, who);
    v1::FindMissingArtifactsRequest request;
    *request.add_digests() = digest;
    v1::FindMissingArtifactsResponse response;
    REQUIRE_THAT(rpc::FromGrpc(artifact_stub->FindMissingArtifacts(&context, request, &response)),
                 IsOk());
    return response.missing_size() == 1;
  }

  absl::Status Create(const std::string& who, v1::CreateJobRequest request) {
    grpc::ClientContext context;
    Prepare(context, who);
    v1::CreateJobResponse response;
    return rpc::FromGrpc(job_stub->CreateJob(&context, request, &response));
  }

  // A request for a job of `project` with that source.
  v1::CreateJobRequest Request(const std::string& project, const v1::Digest& source) {
    v1::CreateJobRequest request = world.Request();
    request.set_parent("projects/" + project);
    request.clear_request_id();
    *request.mutable_job()->mutable_problem()->mutable_source() = source;
    return request;
  }

  // A job of project p that has run, from kSource.
  void RunJob() {
    world.Create(world.Request());
    world.AwaitEnd();
  }

  // All that the job of p refers to.
  std::vector<v1::Digest> References() {
    std::vector<v1::Digest> digests = {store::DigestOf(kSource)};
    for (const v1::Candidate& candidate : world.Candidates()) {
      if (candidate.has_program()) digests.push_back(candidate.program());
    }
    return digests;
  }

  Names ReadersOf(const v1::Digest& digest) {
    Names readers;
    for (const std::string& name : Everybody()) {
      const auto read = Download(name, digest);
      if (read.ok()) readers.insert(name);
      if (!read.ok()) CHECK(rpc::ErrorReason(read.status()) == "ARTIFACT_NOT_FOUND");
    }
    return readers;
  }

  World world;
  const base::TempDir folder = *base::TempDir::Create();
  testing::FakeClock clock;
  std::unique_ptr<access::Guard> guard;
  Seat seat;
  Relay relay{seat};
  const ArtifactAccess access;
  const std::unique_ptr<grpc::Service> jobs =
      MakeJobService(relay, world.memory, world.feed, world.executor, access);
  const std::unique_ptr<grpc::Service> artifacts =
      MakeArtifactService(*world.artifacts, world.executor, access);
  const std::unique_ptr<grpc::Service> gated_jobs = rpc::PutBehindGate(*jobs, "mtmc.v1.JobService");
  const std::unique_ptr<grpc::Service> gated_artifacts =
      rpc::PutBehindGate(*artifacts, "mtmc.v1.ArtifactService");
  std::unique_ptr<rpc::RpcServer> server;
  std::unique_ptr<v1::JobService::Stub> job_stub;
  std::unique_ptr<v1::ArtifactService::Stub> artifact_stub;
};

// What a caller sees of an error, without the digest that it asked for.
std::string Seen(const absl::Status& status, const v1::Digest& digest) {
  return absl::StrCat(
      absl::StrReplaceAll(rpc::ToGrpc(status).error_details(), {{digest.sha256(), "DIGEST"}}),
      absl::StrReplaceAll(status.ToString(), {{digest.sha256(), "DIGEST"}}));
}

TEST_CASE("Who reads in a project reads what its jobs refer to, and nobody else does",
          "[coordinator]") {
  Served served;
  served.RunJob();
  const auto references = served.References();
  REQUIRE(references.size() > 2);

  for (const v1::Digest& digest : references) {
    CAPTURE(digest.sha256());
    CHECK(served.ReadersOf(digest) == kReadersOfP);
  }
  CHECK(*served.Download("p-viewer", references[0]) == kSource);
}

TEST_CASE("A blob of another project looks absent in every way", "[coordinator]") {
  Served served;
  served.RunJob();
  const v1::Digest theirs = store::DigestOf(kSource);
  const v1::Digest absent = store::DigestOf("class Model: ...!");
  REQUIRE(absent.size_bytes() == theirs.size_bytes());

  CHECK(Seen(served.Download("q-viewer", theirs).status(), theirs) ==
        Seen(served.Download("q-viewer", absent).status(), absent));
  CHECK(Seen(served.Download("q-viewer", theirs).status(), theirs) ==
        Seen(served.Download("root", absent).status(), absent));
  for (const bool is_start : {false, true}) {
    const auto create = [&](const std::string& who, const v1::Digest& digest) {
      v1::CreateJobRequest request = served.Request("q", digest);
      if (is_start) {
        const v1::Digest own = store::DigestOf("own");
        REQUIRE_THAT(served.Upload("q-submitter", "own", own), IsOk());
        *request.mutable_job()->mutable_problem()->mutable_source() = own;
        *request.mutable_job()->mutable_start_program() = digest;
      }
      const absl::Status status = served.Create(who, request);
      CHECK(rpc::ErrorReason(status) == "ARTIFACT_NOT_FOUND");
      request.set_validate_only(true);
      CHECK(served.Create(who, request) == status);
      return Seen(status, digest);
    };
    CHECK(create("q-submitter", theirs) == create("q-submitter", absent));
    CHECK(create("q-administrator", theirs) == create("root", absent));
  }
  for (const char* name : {"q-submitter", "q-administrator"}) {
    CHECK(served.IsMissing(name, theirs));
    CHECK(served.IsMissing(name, absent));
  }
  for (const char* name : {"p-submitter", "both", "all-submitter", "root"}) {
    CHECK_FALSE(served.IsMissing(name, theirs));
    CHECK(served.IsMissing(name, absent));
  }
}

TEST_CASE("Who uploads the bytes of a blob has it in each project where it makes jobs",
          "[coordinator]") {
  Served served;
  served.RunJob();
  const v1::Digest digest = store::DigestOf(kSource);

  // Who knows the digest alone has nothing.
  CHECK(rpc::ErrorReason(served.Upload("q-submitter", "class Model: fail", digest)) ==
        "DIGEST_MISMATCH");
  CHECK(served.ReadersOf(digest) == kReadersOfP);
  // Whoever may submit nowhere in particular gives it to no project.
  REQUIRE_THAT(served.Upload("all-submitter", kSource, digest), IsOk());
  CHECK(served.ReadersOf(digest) == kReadersOfP);

  REQUIRE_THAT(served.Upload("q-submitter", kSource, digest), IsOk());

  CHECK(served.ReadersOf(digest) == Everybody());
  CHECK_FALSE(served.IsMissing("q-submitter", digest));
  CHECK_THAT(served.Create("q-submitter", served.Request("q", digest)), IsOk());
}

TEST_CASE("A blob that was uploaded is read in the uploader's projects alone", "[coordinator]") {
  Served served;
  const v1::Digest digest = store::DigestOf("new");

  REQUIRE_THAT(served.Upload("both", "new", digest), IsOk());

  Names readers = kReadersOfAll;
  // Who only reads in project p uploads nothing there.
  readers.insert({"both", "q-viewer", "q-submitter", "q-administrator"});
  CHECK(served.ReadersOf(digest) == readers);
}

TEST_CASE("Who may read a blob in one project may take it to another", "[coordinator]") {
  Served served;
  served.RunJob();
  const v1::Digest digest = store::DigestOf(kSource);

  REQUIRE_THAT(served.Create("both", served.Request("q", digest)), IsOk());

  CHECK(served.ReadersOf(digest) == Everybody());
}

TEST_CASE("With a job goes what only it referred to", "[coordinator]") {
  Served served;
  served.RunJob();
  const v1::Digest digest = store::DigestOf(kSource);
  REQUIRE_THAT(served.Create("both", served.Request("q", digest)), IsOk());

  REQUIRE_THAT(served.world.coordinator->DeleteJob(kJob), IsOk());

  Names readers = kReadersOfAll;
  readers.insert({"both", "q-viewer", "q-submitter", "q-administrator"});
  CHECK(served.ReadersOf(digest) == readers);
}

TEST_CASE("Where projects share, and where nobody is asked, all artifacts are read by all",
          "[coordinator]") {
  const Options options = GENERATE(Options{.is_shared = true}, Options{.has_guard = false});
  Served served(options);
  served.RunJob();

  for (const v1::Digest& digest : served.References()) {
    CHECK(served.ReadersOf(digest) == Everybody());
  }
  CHECK_FALSE(served.IsMissing("q-submitter", store::DigestOf(kSource)));
  CHECK_THAT(served.Create("q-submitter", served.Request("q", store::DigestOf(kSource))), IsOk());
}

TEST_CASE("A malformed digest is refused as such, whoever asks", "[coordinator]") {
  Served served;
  v1::Digest digest;
  digest.set_sha256("' OR 1 = 1 --");

  for (const char* name : {"q-viewer", "root"}) {
    CHECK(rpc::ErrorReason(served.Download(name, digest).status()) == "INVALID_DIGEST");
  }
  for (const char* name : {"q-submitter", "root"}) {
    CHECK(rpc::ErrorReason(served.Create(name, served.Request("q", digest))) == "INVALID_JOB");
  }
}

}  // namespace
}  // namespace mtmc::coordinator
