// SPDX-License-Identifier: Apache-2.0
#include "worker/runner/gpu_fixture.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <iostream>

#include "common/config/python_environment.h"
#include "kernel/program/parser.h"

namespace mtmc::worker {

std::string ProgramPath(const std::string& name) {
  const char* folder = std::getenv("MTMC_BIN");
  return std::string(folder ? folder : MTMC_BINARY_DIR) + "/" + name;
}

std::string CudaPlugin() { return ProgramPath("../lib/mtmc_aten_cuda.so"); }

std::span<const std::byte> Bytes(const Floats& values) { return std::as_bytes(std::span(values)); }

Gpu* Gpu::Find() {
  static Gpu* gpu = Open().release();
  if (!gpu) std::cout << "SKIPPED: there is no CUDA device\n";
  return gpu;
}

Outcome<std::unique_ptr<PlanRunner>> Gpu::Load(const std::string& text,
                                               std::vector<std::string> allowed) {
  const kernel::ParseResult parsed = kernel::ParseProgram(text);
  INFO(kernel::ToText(parsed.diagnostics));
  REQUIRE(parsed.program.has_value());
  const kernel::Bindings bindings = kernel::DefaultBindings(*parsed.program);
  const CompileResult compiled = compiler->Compile(text, bindings);
  INFO(compiled.log);
  REQUIRE_FALSE(compiled.failure);
  return PlanRunner::Create(*backend.device, backend.library.get(),
                            {.program = *parsed.program,
                             .bindings = bindings,
                             .binary = compiled.binary,
                             .allowed_calls = std::move(allowed)});
}

std::unique_ptr<Gpu> Gpu::Open() {
  auto environment = config::PythonEnvironment::Probe();
  if (!environment.ok()) return nullptr;
  auto gpu = std::make_unique<Gpu>();
  gpu->tools = ToolPaths::From(*environment);
  auto backend = OpenBackend({.dialect = kernel::Dialect::kCuda,
                              .aten_plugin = CudaPlugin(),
                              .measures_rates = true,
                              .tools = gpu->tools});
  if (!backend.ok()) {
    std::cout << backend.status().message() << std::endl;
    return nullptr;
  }
  gpu->backend = *std::move(backend);
  auto compiler =
      NvrtcCompiler::Create({.library = gpu->tools.nvrtc,
                             .include_dir = gpu->tools.cuda_include_dir,
                             .compute_capability = gpu->backend.facts.compute_capability});
  if (!compiler.ok()) return nullptr;
  gpu->compiler = *std::move(compiler);
  return gpu;
}

Floats OutputOf(PlanRunner& plan, size_t index) {
  auto outputs = plan.Outputs();
  REQUIRE(outputs.ok());
  Floats values(static_cast<size_t>((*outputs)[index].tensor->type.elements()));
  REQUIRE_FALSE((*outputs)[index].buffer->Download(std::as_writable_bytes(std::span(values))));
  return values;
}

double MedianOf(PlanRunner& plan) {
  std::vector<double> samples;
  for (int i = 0; i < 21; ++i) {
    auto sample = plan.Time(/*is_cold=*/true);
    REQUIRE(sample.ok());
    samples.push_back(sample->seconds);
  }
  std::nth_element(samples.begin(), samples.begin() + 10, samples.end());
  return samples[10];
}

}  // namespace mtmc::worker
