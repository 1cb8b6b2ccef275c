// SPDX-License-Identifier: Apache-2.0
#include "policy/model/decoder_model.h"

#include <dlfcn.h>

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "policy/model/decoder_abi.h"

namespace mtmc::policy {
namespace {

// Libraries stay open until the process ends: libtorch registers things at
// exit that must not be unloaded before.
absl::StatusOr<void*> OpenLibrary(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::UnavailableError(absl::StrCat("cannot open ", path, ": ", dlerror()));
  }
  return library;
}

// The plug-in names libtorch without a path. Opening it by path first makes
// the dynamic linker take that copy.
absl::Status OpenTorch(const DecoderModel::Options& options) {
  if (options.torch_folder.empty()) return absl::OkStatus();
  const bool needs_cuda = options.device.starts_with("cuda");
  for (const std::string name :
       {"libc10.so", "libtorch_cpu.so", "libc10_cuda.so", "libtorch_cuda.so"}) {
    if (!needs_cuda && name.find("cuda") != name.npos) continue;
    MTMC_RETURN_IF_ERROR(OpenLibrary(absl::StrCat(options.torch_folder, "/", name)).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<const MtmcDecoderApi*> OpenPlugin(const DecoderModel::Options& options) {
  MTMC_RETURN_IF_ERROR(OpenTorch(options));
  MTMC_ASSIGN_OR_RETURN(void* const library, OpenLibrary(options.plugin_path));
  using Entry = const MtmcDecoderApi* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, MTMC_DECODER_ENTRY));
  if (entry == nullptr || entry()->version != kMtmcDecoderAbiVersion) {
    return absl::UnavailableError(
        absl::StrCat(options.plugin_path, " is of another version, rebuild it"));
  }
  return entry();
}

int32_t LookupWeight(void* context, const char* name, MtmcDecoderTensor* tensor) {
  const WeightFiles::Tensor* const stored = static_cast<const WeightFiles*>(context)->Find(name);
  if (stored == nullptr) return 0;
  *tensor = {.type = static_cast<int32_t>(stored->type),
             .shape = stored->shape.data(),
             .rank = stored->shape.size(),
             .data = stored->bytes.data(),
             .bytes = stored->bytes.size()};
  return 1;
}

void KeepStatus(void* context, int32_t code, const char* message) {
  *static_cast<absl::Status*>(context) = absl::Status(static_cast<absl::StatusCode>(code), message);
}

// What a tree looks like on the other side; keeps the arrays it points to.
struct PlainTree {
  explicit PlainTree(const DecoderModel::Tree& tree) : tokens(tree.prompt) {
    for (const std::vector<int32_t>& continuation : tree.continuations) {
      tokens.insert(tokens.end(), continuation.begin(), continuation.end());
      lengths.push_back(continuation.size());
    }
  }

  std::vector<int32_t> tokens;
  std::vector<size_t> lengths;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DecoderModel>> DecoderModel::Load(const ModelConfig& config,
                                                                 const WeightFiles& weights,
                                                                 const Options& options) {
  MTMC_ASSIGN_OR_RETURN(const MtmcDecoderApi* const api, OpenPlugin(options));
  const std::vector<double> frequencies = RopeFrequencies(config.rope, config.head_size);
  const std::vector<float> rounded(frequencies.begin(), frequencies.end());
  const MtmcDecoderConfig plain = {
      .vocab_size = config.vocab_size,
      .hidden_size = config.hidden_size,
      .intermediate_size = config.intermediate_size,
      .layers = config.layers,
      .attention_heads = config.attention_heads,
      .key_value_heads = config.key_value_heads,
      .head_size = config.head_size,
      .rms_norm_epsilon = config.rms_norm_epsilon,
      .ties_word_embeddings = config.ties_word_embeddings,
      .has_query_key_value_bias = config.has_query_key_value_bias,
      .has_output_bias = config.has_output_bias,
      .has_mlp_bias = config.has_mlp_bias,
      .rope_frequencies = rounded.data(),
      .rope_attention_factor = config.rope.attention_factor,
      .device = options.device.c_str(),
      .keeps_bfloat16 = options.keeps_bfloat16,
  };
  absl::Status status = absl::InternalError("the plug-in gave no reason");
  // The lookup only reads; the boundary has no const.
  void* const lookup_context = const_cast<WeightFiles*>(&weights);
  void* const model = api->create(&plain, &LookupWeight, lookup_context, &KeepStatus, &status);
  if (model == nullptr) return status;
  return std::unique_ptr<DecoderModel>(new DecoderModel(*api, model));
}

DecoderModel::~DecoderModel() { api_.destroy(model_); }

int64_t DecoderModel::parameters() const { return api_.parameters(model_); }

absl::StatusOr<std::vector<DecoderModel::TreeScores>> DecoderModel::Score(
    std::span<const Tree> trees) const {
  const std::vector<PlainTree> kept(trees.begin(), trees.end());
  std::vector<MtmcDecoderTree> plain;
  size_t total = 0;
  for (size_t i = 0; i < trees.size(); ++i) {
    plain.push_back({.tokens = kept[i].tokens.data(),
                     .prompt_length = trees[i].prompt.size(),
                     .lengths = kept[i].lengths.data(),
                     .continuations = kept[i].lengths.size()});
    total += kept[i].tokens.size() - trees[i].prompt.size();
  }
  std::vector<double> scores(total);
  absl::Status status = absl::InternalError("the plug-in gave no reason");
  if (api_.score(model_, plain.data(), plain.size(), scores.data(), &KeepStatus, &status) == 0) {
    return status;
  }
  std::vector<TreeScores> result;
  auto next = scores.begin();
  for (const PlainTree& tree : kept) {
    TreeScores& tree_scores = result.emplace_back();
    for (const size_t length : tree.lengths) {
      const auto end = next + static_cast<std::ptrdiff_t>(length);
      tree_scores.emplace_back(next, end);
      next = end;
    }
  }
  return result;
}

}  // namespace mtmc::policy
