// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernel/program/parser.h"
#include "worker/device/plan_runner.h"
#include "worker/opencl/opencl_compiler.h"
#include "worker/opencl/opencl_device.h"

namespace mtmc::worker {

// A device with its compiler, or nothing where the host has no OpenCL.
struct Bench {
  std::shared_ptr<const OpenClContext> context;
  std::unique_ptr<OpenClDevice> device;

  static std::unique_ptr<Bench> Find() {
    auto context = OpenClContext::Create(0);
    if (!context.ok()) {
      std::cout << "SKIPPED: " << context.status().message() << "\n";
      return nullptr;
    }
    return std::unique_ptr<Bench>(new Bench{*context, std::make_unique<OpenClDevice>(*context)});
  }

  Outcome<std::unique_ptr<PlanRunner>> Load(const std::string& text,
                                            kernel::Bindings bindings = {}) {
    const kernel::ParseResult parsed = kernel::ParseProgram(text);
    INFO(kernel::ToText(parsed.diagnostics));
    REQUIRE(parsed.program.has_value());
    OpenClCompiler compiler(context);
    CompileResult compiled = compiler.Compile(text, bindings);
    if (compiled.failure) return *compiled.failure;
    return PlanRunner::Create(*device, nullptr,
                              {.program = *parsed.program,
                               .bindings = bindings,
                               .binary = compiled.binary,
                               .allowed_calls = {}});
  }
};

using Floats = std::vector<float>;

inline std::span<const std::byte> Bytes(const Floats& values) {
  return std::as_bytes(std::span(values));
}

inline Floats FirstOutput(PlanRunner& runner) {
  auto outputs = runner.Outputs();
  REQUIRE(outputs.ok());
  Floats values(static_cast<size_t>(outputs->front().tensor->type.elements()));
  REQUIRE_FALSE(outputs->front().buffer->Download(std::as_writable_bytes(std::span(values))));
  return values;
}

// h = FACTOR * x, y = h + 1.
inline constexpr char kScale[] = R"(//@ mtmc 1 opencl
//@ input  x f32[1000]
//@ buffer h f32[1000]
//@ output y f32[1000]
//@ tune FACTOR = 2 3
//@ launch scale grid=(ceil_div(1000, 64)) block=64 args=(x, h, 1000)
//@ launch add_one grid=(125) block=(8) args=(h, y, 1.0)
__kernel void scale(__global const float* x, __global float* h, int n) {
  int i = get_global_id(0);
  if (i < n) h[i] = FACTOR * x[i];
}
__kernel void add_one(__global const float* h, __global float* y, float one) {
  int i = get_global_id(0);
  y[i] = h[i] + one;
}
)";

}  // namespace mtmc::worker
