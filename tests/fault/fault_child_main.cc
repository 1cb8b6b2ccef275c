// SPDX-License-Identifier: Apache-2.0
//
// mtmc-fault-child: stands for a builder, a runner and a reference process. It
// answers as they do, without a device, and commits the fault that the program's
// text, or a file beside it, asks for.
#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "common/base/status_macros.h"
#include "mtmc/pipe/v1/builder.pb.h"
#include "mtmc/pipe/v1/reference.pb.h"
#include "mtmc/pipe/v1/runner.pb.h"
#include "tests/fault/fault.h"
#include "worker/builder/child_main.h"

namespace mtmc::fault {
namespace {

// Commits the fault if it is for this moment; whether the context is lost then.
bool Meet(const std::optional<Fault>& fault, std::string_view moment) {
  if (!fault || fault->moment != moment) return false;
  Commit(fault->act);
  return fault->act == Fault::Act::kContextLost;
}

// Takes one line of a file `faults` in `folder`, if it is for this moment: faults
// of a process that sees no program, each done once, whichever process meets it.
std::optional<Fault> TakeFault(const std::filesystem::path& folder, std::string_view moment) {
  const std::filesystem::path path = folder / "faults";
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const std::optional<Fault> fault = FindFault(line);
  if (!fault || fault->moment != moment) return std::nullopt;
  std::stringstream rest;
  rest << file.rdbuf();
  file.close();
  std::ofstream(path) << rest.str();
  return fault;
}

template <typename Message>
std::string MomentOf(const Message& request) {
  const auto* field = request.GetReflection()->GetOneofFieldDescriptor(
      request, request.GetDescriptor()->FindOneofByName("request"));
  return field ? field->name() : "";
}

class Runner {
 public:
  explicit Runner(std::filesystem::path folder) : folder_(std::move(folder)) {}

  pipe::v1::RunnerResponse Answer(const pipe::v1::RunnerRequest& request) {
    const std::string moment = MomentOf(request);
    pipe::v1::RunnerResponse response;
    response.set_sequence(request.sequence());
    if (request.has_load()) Load(request.load());
    bool is_context_lost = Meet(fault_, moment);
    if (const auto fault = TakeFault(folder_, moment)) {
      is_context_lost = Meet(fault, moment) || is_context_lost;
      // A canary that is asked for nothing else tells that the device is broken.
      if (request.has_canary()) response.mutable_canary()->set_fault("computed 1 where 2 is right");
    }
    if (is_context_lost) {
      response.mutable_failure()->set_kind(v1::Failure::KIND_OUT_OF_BOUNDS);
      response.set_is_context_lost(true);
      return response;
    }
    Fill(request, response);
    return response;
  }

 private:
  // `tune load ...` is a fault of the second variant alone.
  void Load(const pipe::v1::RunnerRequest::Load& load) {
    fault_ = FindFault(load.program());
    const auto width = load.parameters().find("WIDTH");
    const bool is_second = width != load.parameters().end() && width->second == 64;
    constexpr std::string_view kSecond = "second.";
    if (!fault_ || fault_->moment.rfind(kSecond, 0) != 0) return;
    fault_->moment = is_second ? fault_->moment.substr(kSecond.size()) : "never";
  }

  static void Fill(const pipe::v1::RunnerRequest& request, pipe::v1::RunnerResponse& response) {
    if (request.has_open()) {
      response.mutable_opened()->mutable_device()->set_product("a device for tests");
      response.mutable_opened()->mutable_device()->set_memory_bytes(int64_t{1} << 30);
      response.mutable_opened()->mutable_device()->set_max_threads_per_block(1024);
    } else if (request.has_canary()) {
      response.mutable_canary();
    } else if (request.has_execute() || request.has_publish()) {
      response.mutable_outputs()->add_outputs()->set_name("y");
      response.mutable_outputs()->set_kept(request.execute().keep_as());
    } else if (request.has_time()) {
      const int samples = request.time().samples();
      for (int i = 0; i < samples; ++i) {
        response.mutable_timed()->add_samples_seconds(1e-3);
      }
    } else if (request.has_profile()) {
      response.mutable_profile()->set_source("host");
    }
  }

  const std::filesystem::path folder_;
  std::optional<Fault> fault_;
};

pipe::v1::BuilderResponse Build(const pipe::v1::BuilderRequest& request) {
  Meet(FindFault(request.build().program()), "build");
  pipe::v1::BuilderResponse response;
  response.set_sequence(request.sequence());
  for (const v1::Variant& asked : request.build().variants()) {
    auto& built = *response.add_built();
    *built.mutable_variant() = asked;
    built.set_binary("binary");
  }
  return response;
}

pipe::v1::ReferenceResponse Refer(const pipe::v1::ReferenceRequest& request) {
  pipe::v1::ReferenceResponse response;
  response.set_sequence(request.sequence());
  if (request.has_load()) {
    // The graph lies where the problem's source would.
    std::ifstream file(request.load().path());
    std::stringstream text;
    text << file.rdbuf();
    response.mutable_loaded()->mutable_inspection()->mutable_graph()->ParseFromString(text.str());
  } else if (request.has_prepare()) {
    response.mutable_prepared()->add_inputs()->set_name("x");
    response.mutable_prepared()->set_prepared(request.prepare().workload() + 1);
    response.mutable_prepared()->set_oracle("fp64");
  } else if (request.has_compare()) {
    response.mutable_compared()->set_is_correct(true);
  } else if (request.has_time_baseline()) {
    for (int i = 0; i < request.time_baseline().samples(); ++i) {
      response.mutable_timed()->add_samples_seconds(2e-3);
    }
  }
  return response;
}

pipe::v1::ReferenceResponse LastWords(const pipe::v1::ReferenceRequest& request) {
  pipe::v1::ReferenceResponse response;
  response.set_sequence(request.sequence());
  response.mutable_failure()->set_reason("REFERENCE_FAILED");
  response.mutable_failure()->set_message("an illegal memory access was encountered");
  response.set_is_last(true);
  return response;
}

// One message in a line of JSON each way.
void ServeLines(const std::filesystem::path& folder) {
  for (std::string line; std::getline(std::cin, line);) {
    pipe::v1::ReferenceRequest request;
    if (!google::protobuf::util::JsonStringToMessage(line, &request).ok()) return;
    const std::string moment = MomentOf(request);
    const bool is_context_lost = Meet(TakeFault(folder, moment), moment);
    pipe::v1::ReferenceResponse response = is_context_lost ? LastWords(request) : Refer(request);
    std::string answer;
    if (!google::protobuf::util::MessageToJsonString(response, &answer).ok()) return;
    std::cout << answer << std::endl;
    if (is_context_lost) return;
  }
}

template <typename Request, typename Answer>
absl::Status ServeMessages(Answer answer) {
  return worker::ServeChannel([&](const std::string& bytes) -> absl::StatusOr<std::string> {
    Request request;
    if (!request.ParseFromString(bytes)) return absl::DataLossError("not a request");
    return answer(request).SerializeAsString();
  });
}

// The daemon starts a runner with `--scratch FOLDER`, a reference process as
// `-m mtmc_reference --scratch FOLDER`, and a builder with neither.
int Main(int argc, char** argv) {
  std::string folder;
  bool is_reference = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "-m") is_reference = true;
    if (argument == "--scratch" && i + 1 < argc) folder = argv[i + 1];
  }
  if (is_reference) {
    ServeLines(folder);
    return 0;
  }
  if (folder.empty()) return worker::ToExitCode(ServeMessages<pipe::v1::BuilderRequest>(Build));
  Runner runner(folder);
  return worker::ToExitCode(ServeMessages<pipe::v1::RunnerRequest>(
      [&](const pipe::v1::RunnerRequest& request) { return runner.Answer(request); }));
}

}  // namespace
}  // namespace mtmc::fault

int main(int argc, char** argv) { return mtmc::fault::Main(argc, argv); }
