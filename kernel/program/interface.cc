// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/interface.h"

namespace mtmc::kernel {

ProgramInterface FromGraph(const Graph& graph) {
  ProgramInterface interface;
  for (const GraphInput& input : graph.inputs) {
    const bool is_user_input = input.kind == GraphInput::Kind::kUserInput;
    interface.inputs.push_back(
        {.role = is_user_input ? Tensor::Role::kInput : Tensor::Role::kWeight,
         .name = input.name,
         .type = input.type});
  }
  for (const GraphOutput& output : graph.outputs) {
    interface.outputs.push_back(
        {.role = Tensor::Role::kOutput, .name = output.name, .type = output.type});
  }
  return interface;
}

}  // namespace mtmc::kernel
