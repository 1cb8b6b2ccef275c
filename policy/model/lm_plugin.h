// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "policy/model/action_scorer.h"

namespace mtmc::policy {

// Opens `mtmc_lm.so`, the part of the policy that links libtorch, at run time:
// a process that never asks for a model starts without libtorch, and the
// library comes from whatever Python environment the host has.
struct LmOptions {
  // The plug-in.
  std::string plugin_path;
  // Folder with `libtorch_cpu.so`; empty leaves it to the dynamic linker.
  std::string torch_folder;
  // Hugging Face folder: config.json, tokenizer.json, model.safetensors.
  std::string model_folder;
  // `cpu` or `cuda:N`.
  std::string device = "cpu";
  // Keep weights in bfloat16, half the memory, instead of float32. Log-
  // probabilities then agree with float32 to about two digits.
  bool keeps_bfloat16 = false;
};

// Blocks while the model loads: milliseconds for a tiny one, some seconds per
// billion parameters. UNAVAILABLE when plug-in or libtorch cannot be opened,
// and the model's own error, with the file, when the folder is not usable.
absl::StatusOr<std::unique_ptr<ActionScorer>> OpenLmPlugin(const LmOptions& options);

}  // namespace mtmc::policy
