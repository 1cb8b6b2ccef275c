// SPDX-License-Identifier: Apache-2.0
#include "common/rest/transcoder.h"

#include <google/api/annotations.pb.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/rpc/error.h"

namespace mtmc::rest {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageFactory;
using google::protobuf::MethodDescriptor;
using Json = nlohmann::json;

absl::Status BadJson(const std::string& why) {
  return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_JSON",
                        absl::StrCat("the body: ", why));
}

absl::Status BadQuery(const std::string& why) {
  return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_QUERY",
                        absl::StrCat("the query: ", why));
}

std::unique_ptr<Message> NewMessage(const Descriptor& type) {
  const Message* prototype = MessageFactory::generated_factory()->GetPrototype(&type);
  return std::unique_ptr<Message>(prototype->New());
}

// Sets the field at `path`, such as `problem.seed`, in a request that is written as
// JSON. Values of a list add up, others take the place of what is there.
absl::Status SetField(const Descriptor& type, const std::string& path, const std::string& value,
                      Json& request) {
  const Descriptor* at = &type;
  Json* place = &request;
  const FieldDescriptor* field = nullptr;
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(path, '.'))) {
    if (field != nullptr) at = field->is_repeated() ? nullptr : field->message_type();
    field = at == nullptr ? nullptr : at->FindFieldByName(name);
    if (field == nullptr && at != nullptr) field = at->FindFieldByCamelcaseName(name);
    if (field == nullptr)
      return BadQuery(absl::StrCat("\"", path, "\" is no field of ", type.name()));
    if (place->is_null()) *place = Json::object();
    if (!place->is_object()) return BadQuery(absl::StrCat("\"", path, "\" is given twice"));
    place = &(*place)[field->name()];
  }
  // The parser reads numbers, enumerators and times from strings, but no booleans.
  Json leaf = value;
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL && (value == "true" || value == "false")) {
    leaf = value == "true";
  }
  if (!field->is_repeated()) {
    *place = std::move(leaf);
  } else {
    if (!place->is_array()) *place = Json::array();
    place->push_back(std::move(leaf));
  }
  return absl::OkStatus();
}

absl::Status ReadQuery(const Descriptor& type, std::string_view query, Json& request) {
  for (const absl::string_view part : absl::StrSplit(base::ToAbsl(query), '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    const auto name = Unescape(base::ToStd(pair.first), /*is_query=*/true);
    const auto value = Unescape(base::ToStd(pair.second), /*is_query=*/true);
    if (!name.ok() || !value.ok()) return BadQuery("a % must be followed by two digits");
    MTMC_RETURN_IF_ERROR(SetField(type, *name, *value, request));
  }
  return absl::OkStatus();
}

// HTTP method and path of a rule; no name for a method that is not served.
struct Verb {
  std::string name;
  std::string path;
};

Verb VerbOf(const google::api::HttpRule& rule) {
  if (rule.has_get()) return {.name = "GET", .path = rule.get()};
  if (rule.has_post()) return {.name = "POST", .path = rule.post()};
  if (rule.has_delete_()) return {.name = "DELETE", .path = rule.delete_()};
  return {};
}

absl::StatusOr<Json> ParseBody(const std::string& body) {
  if (body.empty()) return Json::object();
  // Deeper than any message of ours; the parser recurses.
  constexpr int kMaxDepth = 64;
  bool is_too_deep = false;
  Json parsed = Json::parse(
      body,
      [&is_too_deep](int depth, Json::parse_event_t, Json&) {
        if (depth > kMaxDepth) is_too_deep = true;
        return depth <= kMaxDepth;
      },
      /*allow_exceptions=*/false);
  if (is_too_deep) return BadJson("nested too deep");
  if (parsed.is_discarded()) return BadJson("is no JSON");
  return parsed;
}

}  // namespace

absl::StatusOr<std::string> ToJson(const Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  if (!status.ok()) return absl::InternalError(std::string(status.message()));
  return json;
}

absl::StatusOr<Transcoder> Transcoder::Make(const std::vector<std::string>& services) {
  Transcoder transcoder;
  for (const std::string& name : services) {
    const auto* service = DescriptorPool::generated_pool()->FindServiceByName(name);
    if (service == nullptr) return absl::InvalidArgumentError(absl::StrCat("no service ", name));
    for (int i = 0; i < service->method_count(); ++i) {
      const MethodDescriptor& method = *service->method(i);
      if (!method.options().HasExtension(google::api::http)) continue;
      const google::api::HttpRule& rule = method.options().GetExtension(google::api::http);
      const Verb verb = VerbOf(rule);
      if (verb.name.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat(method.full_name(), ": only get, post and delete"));
      }
      Route route{.http_method = verb.name, .path = {}, .body = rule.body(), .method = &method};
      MTMC_ASSIGN_OR_RETURN(route.path, PathTemplate::Parse(verb.path));
      transcoder.routes_.push_back(std::move(route));
    }
  }
  return transcoder;
}

absl::StatusOr<Call> Transcoder::Transcode(const std::string& method, std::string_view target,
                                           const std::string& body) const {
  const std::size_t mark = target.find('?');
  const std::string_view path = target.substr(0, mark);
  const std::string_view query = mark == target.npos ? std::string_view() : target.substr(mark + 1);
  std::set<std::string> allowed;
  for (const Route& route : routes_) {
    const std::optional<PathTemplate::Bindings> bindings = route.path.Match(path);
    if (!bindings) continue;
    if (route.http_method != method) {
      allowed.insert(route.http_method);
      continue;
    }
    const Descriptor& type = *route.method->input_type();
    Json request = Json::object();
    if (route.body.empty()) {
      if (!body.empty()) return BadJson("this method takes none");
    } else {
      MTMC_ASSIGN_OR_RETURN(Json parsed, ParseBody(body));
      if (!parsed.is_object()) return BadJson("must be an object");
      (route.body == "*" ? request : request[route.body]) = std::move(parsed);
    }
    MTMC_RETURN_IF_ERROR(ReadQuery(type, query, request));
    for (const auto& [field, value] : *bindings) {
      MTMC_RETURN_IF_ERROR(SetField(type, field, value, request));
    }
    Call call{.method = route.method, .request = NewMessage(type)};
    const auto status = google::protobuf::util::JsonStringToMessage(
        request.dump(-1, ' ', false, Json::error_handler_t::replace), call.request.get());
    if (!status.ok()) return BadJson(std::string(status.message()));
    return call;
  }
  if (!allowed.empty()) {
    return rpc::MakeError(absl::StatusCode::kUnimplemented, "METHOD_NOT_ALLOWED",
                          absl::StrCat("use ", absl::StrJoin(allowed, " or "), " for this path"),
                          {{"allow", absl::StrJoin(allowed, ", ")}});
  }
  return rpc::MakeError(
      absl::StatusCode::kNotFound, "PATH_NOT_FOUND",
      absl::StrCat("nothing is served at ", base::ToAbsl(path), "; docs/rest.md lists the paths"));
}

absl::StatusOr<std::string> Transcoder::ResponseToJson(const MethodDescriptor& method,
                                                       const std::string& wire) {
  const std::unique_ptr<Message> response = NewMessage(*method.output_type());
  if (!response->ParseFromString(wire)) return absl::InternalError("the answer is no message");
  return ToJson(*response);
}

}  // namespace mtmc::rest
