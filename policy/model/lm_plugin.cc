// SPDX-License-Identifier: Apache-2.0
#include "policy/model/lm_plugin.h"

#include <dlfcn.h>

#include <filesystem>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "policy/model/lm_abi.h"

namespace mtmc::policy {
namespace {

MtmcLmText AsText(std::string_view text) { return {text.data(), text.size()}; }

std::string_view FromText(MtmcLmText text) { return {text.data, text.size}; }

absl::Status MakeStatus(int code, MtmcLmText message) {
  return {static_cast<absl::StatusCode>(code), base::ToAbsl(FromText(message))};
}

// Libraries stay open until the process ends: libtorch registers things at
// exit that must not be unloaded before.
absl::StatusOr<void*> OpenLibrary(const std::string& path, int scope) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | scope);
  if (library == nullptr) {
    return absl::UnavailableError(absl::StrCat("cannot open ", path, ": ", dlerror()));
  }
  return library;
}

// The plug-in names libtorch without a path. Opening it by path first makes
// the dynamic linker take that copy.
absl::Status OpenTorch(const LmOptions& options) {
  if (options.torch_folder.empty()) return absl::OkStatus();
  const bool needs_cuda = options.device.starts_with("cuda");
  for (const char* name :
       {"libc10.so", "libtorch_cpu.so", "libc10_cuda.so", "libtorch_cuda.so"}) {
    const bool is_cuda_library = std::string_view(name).find("cuda") != std::string_view::npos;
    if (is_cuda_library && !needs_cuda) continue;
    MTMC_RETURN_IF_ERROR(
        OpenLibrary(absl::StrCat(options.torch_folder, "/", name), RTLD_GLOBAL).status());
  }
  return absl::OkStatus();
}

// The other side of the boundary as an ActionScorer. Owns its model.
class PluginScorer final : public ActionScorer {
 public:
  PluginScorer(const MtmcLmApi& api, void* model) : api_(api), model_(model) {}
  PluginScorer(const PluginScorer&) = delete;
  PluginScorer& operator=(const PluginScorer&) = delete;
  ~PluginScorer() override { api_.destroy(model_); }

  std::vector<Result> Score(std::span<const ScoreRequest> requests) override;

  std::string model_digest() const override { return std::string(FromText(api_.digest(model_))); }

  std::string description() const override {
    return std::string(FromText(api_.description(model_)));
  }

 private:
  const MtmcLmApi& api_;
  void* const model_;
};

struct Collector {
  std::span<const ScoreRequest> requests;
  std::vector<ActionScorer::Result>& results;
};

void Collect(void* context, size_t request, int code, MtmcLmText message,
             const size_t* token_counts, const double* log_probabilities) {
  auto& collector = *static_cast<Collector*>(context);
  if (request >= collector.results.size()) return;
  if (code != 0) {
    collector.results[request] = MakeStatus(code, message);
    return;
  }
  std::vector<ActionScore> scores(collector.requests[request].actions.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    scores[i].token_log_probabilities.assign(log_probabilities,
                                             log_probabilities + token_counts[i]);
    log_probabilities += token_counts[i];
  }
  collector.results[request] = std::move(scores);
}

std::vector<ActionScorer::Result> PluginScorer::Score(std::span<const ScoreRequest> requests) {
  std::vector<std::vector<MtmcLmText>> actions(requests.size());
  std::vector<MtmcLmRequest> plain(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    for (const std::string& action : requests[i].actions) actions[i].push_back(AsText(action));
    plain[i] = {.prompt = AsText(requests[i].prompt),
                .actions = actions[i].data(),
                .action_count = actions[i].size()};
  }
  std::vector<Result> results(requests.size(), absl::InternalError("the plug-in gave no result"));
  Collector collector{.requests = requests, .results = results};
  api_.score(model_, plain.data(), plain.size(), &Collect, &collector);
  return results;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ActionScorer>> OpenLmPlugin(const LmOptions& options) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(options.model_folder, ignored)) {
    return absl::NotFoundError(
        absl::StrCat("model folder '", options.model_folder, "' does not exist"));
  }
  MTMC_RETURN_IF_ERROR(OpenTorch(options));
  MTMC_ASSIGN_OR_RETURN(void* const library, OpenLibrary(options.plugin_path, RTLD_LOCAL));
  using Entry = const MtmcLmApi* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, MTMC_LM_ENTRY));
  if (entry == nullptr || entry()->version != kMtmcLmAbiVersion) {
    return absl::UnavailableError(
        absl::StrCat(options.plugin_path, " is of another version, rebuild it"));
  }
  const MtmcLmModelOptions model_options = {.folder = AsText(options.model_folder),
                                            .device = AsText(options.device),
                                            .keeps_bfloat16 = options.keeps_bfloat16 ? 1 : 0};
  absl::Status status = absl::InternalError("the plug-in gave no reason");
  const MtmcLmReport report = [](void* context, int code, MtmcLmText message) {
    *static_cast<absl::Status*>(context) = MakeStatus(code, message);
  };
  void* const model = entry()->create(&model_options, report, &status);
  if (model == nullptr) return status;
  return std::make_unique<PluginScorer>(*entry(), model);
}

}  // namespace mtmc::policy
