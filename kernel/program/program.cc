// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/program.h"

#include <algorithm>

namespace mtmc::kernel {

const Tensor* Program::FindTensor(std::string_view name) const {
  const auto it = std::find_if(tensors.begin(), tensors.end(),
                               [&](const Tensor& tensor) { return tensor.name == name; });
  return it == tensors.end() ? nullptr : &*it;
}

bool LiesWithin(const StridedView& view, int64_t elements) {
  const bool is_empty = std::find(view.shape.begin(), view.shape.end(), 0) != view.shape.end();
  if (is_empty) return view.offset <= elements;
  int64_t last = view.offset;
  for (size_t axis = 0; axis < view.shape.size(); ++axis) {
    int64_t step = 0;
    if (__builtin_mul_overflow(view.shape[axis] - 1, view.strides[axis], &step) ||
        __builtin_add_overflow(last, step, &last)) {
      return false;
    }
  }
  return last < elements;
}

Bindings DefaultBindings(const Program& program) {
  Bindings bindings;
  for (const TuneParameter& parameter : program.tune) {
    if (!parameter.values.empty()) bindings[parameter.name] = parameter.values.front();
  }
  return bindings;
}

std::vector<Bindings> Variants(const Program& program, int limit) {
  std::vector<Bindings> variants;
  std::vector<size_t> digits(program.tune.size(), 0);
  while (static_cast<int>(variants.size()) < limit) {
    Bindings bindings;
    for (size_t i = 0; i < digits.size(); ++i) {
      bindings[program.tune[i].name] = program.tune[i].values[digits[i]];
    }
    variants.push_back(std::move(bindings));
    // Counts like an odometer whose last wheel turns fastest.
    size_t wheel = digits.size();
    while (wheel > 0 && ++digits[wheel - 1] == program.tune[wheel - 1].values.size()) {
      digits[--wheel] = 0;
    }
    if (wheel == 0) break;
  }
  return variants;
}

std::string_view ToText(Dialect dialect) {
  switch (dialect) {
    case Dialect::kOpenCl:
      return "opencl";
    case Dialect::kCuda:
      return "cuda";
    case Dialect::kTriton:
      return "triton";
  }
  return "";
}

std::string_view ToText(Tensor::Role role) {
  switch (role) {
    case Tensor::Role::kInput:
      return "input";
    case Tensor::Role::kWeight:
      return "weight";
    case Tensor::Role::kBuffer:
      return "buffer";
    case Tensor::Role::kOutput:
      return "output";
  }
  return "";
}

std::string_view ToText(LibraryCall::Precision precision) {
  switch (precision) {
    case LibraryCall::Precision::kDefault:
      return "default";
    case LibraryCall::Precision::kTf32:
      return "tf32";
    case LibraryCall::Precision::kIeee:
      return "ieee";
  }
  return "";
}

}  // namespace mtmc::kernel
