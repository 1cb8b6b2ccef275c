// SPDX-License-Identifier: Apache-2.0
#include "common/access/rule_table.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>

namespace mtmc::access {
namespace {

constexpr std::string_view kJobs = "mtmc.v1.JobService";
constexpr std::string_view kCandidates = "mtmc.v1.CandidateService";
constexpr std::string_view kArtifacts = "mtmc.v1.ArtifactService";
constexpr std::string_view kRecords = "mtmc.v1.RecordService";
constexpr std::string_view kQuotas = "mtmc.v1.QuotaService";
constexpr std::string_view kWorkers = "mtmc.v1.WorkerService";
constexpr std::string_view kLeases = "mtmc.v1.LeaseService";
constexpr std::string_view kCoders = "mtmc.v1.MicroCodingService";
constexpr std::string_view kPolicies = "mtmc.v1.PolicyService";

Rule Read(std::string_view service, std::string_view method, std::string_view field) {
  return {.service = service,
          .method = method,
          .least = Role::kViewer,
          .scope = Rule::Scope::kProject,
          .resource_field = field};
}

Rule Change(std::string_view service, std::string_view method, std::string_view field) {
  return {.service = service,
          .method = method,
          .least = Role::kSubmitter,
          .scope = Rule::Scope::kProject,
          .resource_field = field,
          .is_audited = true};
}

// The fleet serves all projects.
Rule Operate(std::string_view method) {
  return {.service = kWorkers,
          .method = method,
          .least = Role::kAdministrator,
          .scope = Rule::Scope::kEveryProject,
          .resource_field = "name",
          .is_audited = true};
}

Rule InAnyProject(std::string_view service, std::string_view method, Role least,
                  std::string_view field = "") {
  return {.service = service,
          .method = method,
          .least = least,
          .scope = Rule::Scope::kAnyProject,
          .resource_field = field};
}

// Between the machines of mtmc.
Rule Machine(std::string_view service, std::string_view method) {
  return {.service = service,
          .method = method,
          .least = Role::kWorker,
          .scope = Rule::Scope::kEveryProject};
}

std::vector<Rule> MakeRules() {
  Rule synchronize = Machine(kLeases, "Synchronize");
  synchronize.resource_field = "worker.name";
  synchronize.is_refusal_audited = true;
  // An administrator of one project gives it no more than it has.
  Rule list_quotas = {.service = kQuotas,
                      .method = "ListQuotas",
                      .least = Role::kAdministrator,
                      .scope = Rule::Scope::kEveryProject};
  Rule update_quota = list_quotas;
  update_quota.method = "UpdateQuota";
  update_quota.resource_field = "name";
  update_quota.is_audited = true;
  // A digest names no project: of which it is, and whether the caller reads there, the service
  // looks up (server/coordinator/artifact_access.h).
  Rule upload = InAnyProject(kArtifacts, "UploadArtifact", Role::kSubmitter);
  upload.is_audited = true;
  Rule download = InAnyProject(kArtifacts, "DownloadArtifact", Role::kViewer);
  download.allows_worker = true;
  return {
      Change(kJobs, "CreateJob", "parent"),
      Read(kJobs, "GetJob", "name"),
      Read(kJobs, "ListJobs", "parent"),
      Change(kJobs, "CancelJob", "name"),
      Change(kJobs, "PauseJob", "name"),
      Change(kJobs, "ResumeJob", "name"),
      Change(kJobs, "DeleteJob", "name"),
      Read(kJobs, "WatchJob", "name"),
      Read(kJobs, "WatchJobs", "parent"),
      Read(kCandidates, "GetCandidate", "name"),
      Read(kCandidates, "ListCandidates", "parent"),
      Read(kRecords, "ListRecords", "parent"),
      Change(kRecords, "ImportRecords", "parent"),
      Change(kRecords, "DeleteRecord", "name"),
      Read(kQuotas, "GetQuota", "name"),
      list_quotas,
      update_quota,
      InAnyProject(kArtifacts, "FindMissingArtifacts", Role::kSubmitter),
      upload,
      download,
      InAnyProject(kWorkers, "GetWorker", Role::kViewer, "name"),
      InAnyProject(kWorkers, "ListWorkers", Role::kViewer),
      Operate("DrainWorker"),
      Operate("UndrainWorker"),
      synchronize,
      Machine(kCoders, "CreateProgram"),
      Machine(kCoders, "ApplyAction"),
      Machine(kCoders, "ListActions"),
      Machine(kCoders, "ListCoders"),
      Machine(kPolicies, "ChooseAction"),
      Machine(kPolicies, "ListPolicies"),
  };
}

bool IsWithin(const Grant& grant, Rule::Scope scope, std::string_view project) {
  if (grant.project == kAllProjects || scope == Rule::Scope::kAnyProject) return true;
  return scope == Rule::Scope::kProject && !project.empty() && grant.project == project;
}

}  // namespace

const std::vector<Rule>& Rules() {
  static const auto& rules = *new std::vector<Rule>(MakeRules());
  return rules;
}

const Rule* FindRule(std::string_view service, std::string_view method) {
  const auto found = std::find_if(Rules().begin(), Rules().end(), [&](const Rule& rule) {
    return rule.service == service && rule.method == method;
  });
  return found == Rules().end() ? nullptr : &*found;
}

std::string ResourceOf(const Rule& rule, const google::protobuf::Message* request) {
  if (request == nullptr || rule.resource_field.empty()) return "";
  std::string_view name = rule.resource_field;
  for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.')) {
    const auto* part = request->GetDescriptor()->FindFieldByName(std::string(name.substr(0, dot)));
    if (part == nullptr || part->is_repeated() || part->message_type() == nullptr) return "";
    request = &request->GetReflection()->GetMessage(*request, part);
    name.remove_prefix(dot + 1);
  }
  const auto* field = request->GetDescriptor()->FindFieldByName(std::string(name));
  const bool is_text = field != nullptr && !field->is_repeated() &&
                       field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING;
  return is_text ? request->GetReflection()->GetString(*request, field) : "";
}

std::string ProjectOf(std::string_view resource) {
  constexpr std::string_view kPrefix = "projects/";
  if (!resource.starts_with(kPrefix)) return "";
  resource.remove_prefix(kPrefix.size());
  return std::string(resource.substr(0, resource.find('/')));
}

const Grant* FindGrant(const Identity& identity, const Rule& rule, std::string_view resource) {
  const std::string project = ProjectOf(resource);
  for (const Grant& grant : identity.grants) {
    const bool has_role =
        Includes(grant.role, rule.least) || (rule.allows_worker && grant.role == Role::kWorker);
    if (has_role && IsWithin(grant, rule.scope, project)) return &grant;
  }
  return nullptr;
}

}  // namespace mtmc::access
