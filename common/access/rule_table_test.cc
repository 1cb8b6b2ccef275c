// SPDX-License-Identifier: Apache-2.0
#include "common/access/rule_table.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/access/guard.h"
#include "common/base/file.h"
#include "common/base/temp_dir.h"
#include "common/rpc/deadline.h"
#include "common/rpc/gate.h"
#include "common/rpc/server.h"
#include "common/rpc/status.h"
#include "common/testing/status_matchers.h"
#include "mtmc/v1/artifact.grpc.pb.h"
#include "mtmc/v1/candidate.grpc.pb.h"
#include "mtmc/v1/job.grpc.pb.h"
#include "mtmc/v1/micro_coding.grpc.pb.h"
#include "mtmc/v1/policy.grpc.pb.h"
#include "mtmc/v1/quota.grpc.pb.h"
#include "mtmc/v1/record.grpc.pb.h"
#include "mtmc/v1/worker.grpc.pb.h"

namespace mtmc::access {
namespace {

using testing::IsOk;

// Callers of the tests. Requests are about project `vision`.
const std::vector<std::pair<std::string, Grant>> kCallers = {
    {"viewer", {Role::kViewer, "vision"}},
    {"submitter", {Role::kSubmitter, "vision"}},
    {"worker", {Role::kWorker, "*"}},
    {"administrator", {Role::kAdministrator, "vision"}},
    {"other-administrator", {Role::kAdministrator, "speech"}},
    {"root", {Role::kAdministrator, "*"}},
};

constexpr char kReads[] = "viewer submitter administrator root";
constexpr char kChanges[] = "submitter administrator root";
constexpr char kReadsAnywhere[] = "viewer submitter administrator other-administrator root";
constexpr char kChangesAnywhere[] = "submitter administrator other-administrator root";
constexpr char kMachines[] = "worker root";
constexpr char kFleet[] = "root";

// Who may call what. A new method of the contract needs a row here and one in Rules().
const std::map<std::string, std::string> kExpected = {
    {"mtmc.v1.JobService/CreateJob", kChanges},
    {"mtmc.v1.JobService/GetJob", kReads},
    {"mtmc.v1.JobService/ListJobs", kReads},
    {"mtmc.v1.JobService/CancelJob", kChanges},
    {"mtmc.v1.JobService/PauseJob", kChanges},
    {"mtmc.v1.JobService/ResumeJob", kChanges},
    {"mtmc.v1.JobService/DeleteJob", kChanges},
    {"mtmc.v1.JobService/WatchJob", kReads},
    {"mtmc.v1.JobService/WatchJobs", kReads},
    {"mtmc.v1.CandidateService/GetCandidate", kReads},
    {"mtmc.v1.CandidateService/ListCandidates", kReads},
    {"mtmc.v1.RecordService/ListRecords", kReads},
    {"mtmc.v1.RecordService/ImportRecords", kChanges},
    {"mtmc.v1.RecordService/DeleteRecord", kChanges},
    {"mtmc.v1.QuotaService/GetQuota", kReads},
    {"mtmc.v1.QuotaService/ListQuotas", kFleet},
    {"mtmc.v1.QuotaService/UpdateQuota", kFleet},
    {"mtmc.v1.ArtifactService/FindMissingArtifacts", kChangesAnywhere},
    {"mtmc.v1.ArtifactService/UploadArtifact", kChangesAnywhere},
    {"mtmc.v1.ArtifactService/DownloadArtifact",
     "viewer submitter worker administrator other-administrator root"},
    {"mtmc.v1.WorkerService/GetWorker", kReadsAnywhere},
    {"mtmc.v1.WorkerService/ListWorkers", kReadsAnywhere},
    {"mtmc.v1.WorkerService/DrainWorker", kFleet},
    {"mtmc.v1.WorkerService/UndrainWorker", kFleet},
    {"mtmc.v1.LeaseService/Synchronize", kMachines},
    {"mtmc.v1.MicroCodingService/CreateProgram", kMachines},
    {"mtmc.v1.MicroCodingService/ApplyAction", kMachines},
    {"mtmc.v1.MicroCodingService/ListActions", kMachines},
    {"mtmc.v1.MicroCodingService/ListCoders", kMachines},
    {"mtmc.v1.PolicyService/ChooseAction", kMachines},
    {"mtmc.v1.PolicyService/ListPolicies", kMachines},
};

// Every method of the contract, from its files.
std::vector<const google::protobuf::MethodDescriptor*> Methods() {
  std::vector<const google::protobuf::MethodDescriptor*> methods;
  const auto* pool = google::protobuf::DescriptorPool::generated_pool();
  for (const auto& entry : std::filesystem::directory_iterator(MTMC_TEST_DATA)) {
    if (!absl::StrContains(*base::ReadFile(entry.path()), "\nservice ")) continue;
    CAPTURE(entry.path());
    const auto* file =
        pool->FindFileByName(absl::StrCat("mtmc/v1/", entry.path().filename().string()));
    REQUIRE(file != nullptr);
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        methods.push_back(file->service(i)->method(j));
      }
    }
  }
  return methods;
}

std::string NameOf(const google::protobuf::MethodDescriptor& method) {
  return absl::StrCat(method.service()->full_name(), "/", method.name());
}

// The field that `path`, as `name` or `worker.name`, leads to; null if there is none.
const google::protobuf::FieldDescriptor* FindField(const google::protobuf::Descriptor& message,
                                                   const std::string& path) {
  const size_t dot = path.find('.');
  const auto* field = message.FindFieldByName(path.substr(0, dot));
  if (field == nullptr || dot == path.npos) return field;
  return FindField(*field->message_type(), path.substr(dot + 1));
}

TEST_CASE("Every method has one rule, whose field is in its request", "[access]") {
  std::set<std::string> named;
  for (const auto* method : Methods()) {
    CAPTURE(method->full_name());
    const Rule* rule = FindRule(method->service()->full_name(), method->name());
    REQUIRE(rule != nullptr);
    named.insert(NameOf(*method));
    const auto& request = *method->input_type();
    if (!rule->resource_field.empty()) {
      const auto* field = FindField(request, std::string(rule->resource_field));
      REQUIRE(field != nullptr);
      CHECK(field->type() == google::protobuf::FieldDescriptor::TYPE_STRING);
    } else {
      CHECK(rule->scope != Rule::Scope::kProject);
      // A resource that the request names is known to the rule.
      CHECK(request.FindFieldByName("name") == nullptr);
      CHECK(request.FindFieldByName("parent") == nullptr);
    }
    // A stream's first message comes after the decision.
    if (method->client_streaming()) CHECK(rule->resource_field.empty());
  }
  CHECK(Rules().size() == named.size());
}

// All services without a method of their own, behind a guard: a call that is let in is
// UNIMPLEMENTED.
class GuardedServer {
 public:
  GuardedServer() {
    std::string lines;
    for (const auto& [name, grant] : kCallers) {
      absl::StrAppend(&lines, TokenLine(name, grant.role, grant.project, name + "-token"), "\n");
    }
    const std::string tokens = folder_.path() / "tokens";
    REQUIRE_THAT(base::WriteFileAtomically(tokens, lines), IsOk());
    auto guard = Guard::Create({.token_file = tokens}, clock_);
    REQUIRE_THAT(guard.status(), IsOk());
    guard_ = *std::move(guard);
    rpc::RpcServer::Options options;
    for (const auto& [name, service] :
         std::vector<std::pair<std::string, grpc::Service*>>{{"JobService", &jobs_},
                                                             {"CandidateService", &candidates_},
                                                             {"ArtifactService", &artifacts_},
                                                             {"RecordService", &records_},
                                                             {"QuotaService", &quotas_},
                                                             {"WorkerService", &workers_},
                                                             {"LeaseService", &leases_},
                                                             {"MicroCodingService", &coders_},
                                                             {"PolicyService", &policies_}}) {
      gated_.push_back(rpc::PutBehindGate(*service, "mtmc.v1." + name));
      options.services.push_back(gated_.back().get());
    }
    options.interceptors.push_back([this] { return rpc::MakeGateInterceptor(*guard_); });
    server_ = *rpc::RpcServer::Create(options);
    channel_ = server_->MakeInProcessChannel();
  }

  // What `caller` is answered; nobody's call if it is empty.
  absl::Status Call(const google::protobuf::MethodDescriptor& method, const std::string& caller,
                    const std::string& resource) {
    google::protobuf::DynamicMessageFactory factory;
    const std::unique_ptr<google::protobuf::Message> request(
        factory.GetPrototype(method.input_type())->New());
    const Rule* rule = FindRule(method.service()->full_name(), method.name());
    // A worker's name is in no project, whatever the request says.
    if (rule != nullptr && !rule->resource_field.empty() &&
        rule->resource_field.find('.') == std::string_view::npos) {
      request->GetReflection()->SetString(
          request.get(), method.input_type()->FindFieldByName(std::string(rule->resource_field)),
          resource);
    }
    const grpc::Slice slice(request->SerializeAsString());
    grpc::ClientContext context;
    rpc::SetDeadline(context, absl::Now() + absl::Seconds(60));
    if (!caller.empty()) context.AddMetadata("authorization", "Bearer " + caller + "-token");
    grpc::GenericStub stub(channel_);
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareCall(&context, "/" + NameOf(method), &queue);
    const auto wait = [&queue] {
      void* tag = nullptr;
      bool is_ok = false;
      return queue.Next(&tag, &is_ok) && is_ok;
    };
    call->StartCall(nullptr);
    if (wait()) {
      call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
      wait();
    }
    grpc::Status status;
    call->Finish(&status, nullptr);
    wait();
    queue.Shutdown();
    wait();
    return rpc::FromGrpc(status);
  }

 private:
  const base::TempDir folder_ = *base::TempDir::Create();
  base::RealClock clock_;
  v1::JobService::CallbackService jobs_;
  v1::CandidateService::CallbackService candidates_;
  v1::ArtifactService::CallbackService artifacts_;
  v1::RecordService::CallbackService records_;
  v1::QuotaService::CallbackService quotas_;
  v1::WorkerService::CallbackService workers_;
  v1::LeaseService::CallbackService leases_;
  v1::MicroCodingService::CallbackService coders_;
  v1::PolicyService::CallbackService policies_;
  std::unique_ptr<Guard> guard_;
  std::vector<std::unique_ptr<grpc::Service>> gated_;
  std::unique_ptr<rpc::RpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_CASE("Over a server, every method lets in whom the table says, and no others", "[access]") {
  GuardedServer server;
  for (const auto* method : Methods()) {
    const auto expected = kExpected.find(NameOf(*method));
    CAPTURE(method->full_name());
    REQUIRE(expected != kExpected.end());
    CHECK(rpc::ErrorReason(server.Call(*method, "", "projects/vision")) == "TOKEN_MISSING");
    CHECK(rpc::ErrorReason(server.Call(*method, "nobody", "projects/vision")) == "TOKEN_INVALID");
    std::vector<std::string> let_in;
    for (const auto& [caller, grant] : kCallers) {
      const absl::Status status = server.Call(*method, caller, "projects/vision/jobs/one");
      CAPTURE(caller, status);
      if (absl::IsUnimplemented(status)) {
        let_in.push_back(caller);
      } else {
        CHECK(absl::IsPermissionDenied(status));
        CHECK(rpc::ErrorReason(status) == "ROLE_MISSING");
      }
    }
    CHECK(absl::StrJoin(let_in, " ") == expected->second);
  }
  CHECK(kExpected.size() == Methods().size());
}

TEST_CASE("A resource that names no project is for those of every project", "[access]") {
  GuardedServer server;
  const auto* get = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
      "mtmc.v1.JobService.GetJob");
  REQUIRE(get != nullptr);
  for (const char* resource :
       {"", "projects/", "projects//jobs/one", "projects/*", "projects/visio", "projects/vision2",
        "workers/vision", " projects/vision", "projects/speech/../vision"}) {
    CAPTURE(resource);
    CHECK(absl::IsPermissionDenied(server.Call(*get, "administrator", resource)));
    CHECK(absl::IsUnimplemented(server.Call(*get, "root", resource)));
  }
}

}  // namespace
}  // namespace mtmc::access
