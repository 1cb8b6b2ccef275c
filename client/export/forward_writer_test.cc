// SPDX-License-Identifier: Apache-2.0
#include "client/export/forward_writer.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "kernel/program/parser.h"

namespace mtmc::client {
namespace {

using kernel::Graph;
using kernel::GraphInput;
using kernel::GraphOutput;
using kernel::TensorType;

// y = f(x, w) with a model buffer that the forward changes.
Graph MakeGraph() {
  const TensorType type{.shape = {8}};
  Graph graph;
  graph.inputs = {
      {.name = "x", .kind = GraphInput::Kind::kUserInput, .type = type},
      {.name = "w", .kind = GraphInput::Kind::kParameter, .type = type, .target = "fc.w"}};
  graph.outputs = {
      {.name = "y", .kind = GraphOutput::Kind::kUserOutput, .value = "y", .type = type},
      {.name = "m",
       .kind = GraphOutput::Kind::kBufferMutation,
       .value = "m",
       .type = type,
       .target = "bn.mean"}};
  return graph;
}

constexpr char kProgram[] = R"(//@ mtmc 1 cuda
//@ input x f32[8]
//@ weight w f32[8]
//@ buffer h f32[8]
//@ output y f32[8]
//@ output m f32[8]
//@ tune B = 4 8
//@ launch scale grid=(ceil_div(8, B)) block=(B) args=(x, w, h, 8, 0.5)
//@ call aten::softmax(h, 0) -> y
//@ call aten::mul(h, 2) -> m precision=tf32
extern "C" __global__ void scale(const float* x, const float* w, float* h, long long n, float s) {
  h[threadIdx.x] = x[threadIdx.x] * w[threadIdx.x] * s;
}
)";

std::string Forward(const std::string& text, const kernel::Bindings& bindings) {
  const kernel::ParseResult parsed = kernel::ParseProgram(text);
  REQUIRE(parsed.program);
  const auto forward = WriteForward(*parsed.program, MakeGraph(), bindings);
  REQUIRE(forward.ok());
  return *forward;
}

bool Has(const std::string& text, const std::string& part) {
  CAPTURE(text, part);
  return text.find(part) != std::string::npos;
}

TEST_CASE("WriteForward evaluates a launch with the tuned values", "[export]") {
  const std::string forward = Forward(kProgram, {{"B", 4}});

  CHECK(Has(forward, R"(_MtmcKernel(_mtmc_program, "scale", (2, 1, 1), (4, 1, 1), 0, )"
                     R"([None, None, None, _mtmc_scalar(8, _mtmc_torch.int64), )"
                     R"(_mtmc_scalar(0.5, _mtmc_torch.float32)]))"));
  CHECK(Has(forward, "_mtmc_step_0(x, w, h)"));
}

TEST_CASE("WriteForward binds parameters by their path in the model", "[export]") {
  const std::string forward = Forward(kProgram, {{"B", 8}});

  // The modules' numbers are in the order in which tensors ask for them.
  CHECK(Has(forward, R"(module_1 = self._modules["fc"])"));
  CHECK(Has(forward, R"(module_1._parameters["w"],  # w)"));
}

TEST_CASE("WriteForward lets a library call make its own result", "[export]") {
  const std::string forward = Forward(kProgram, {{"B", 8}});

  CHECK(Has(forward, R"(_mtmc_step_1 = _MtmcLibraryCall("aten::softmax", "", "default"))"));
  CHECK(Has(forward, "[y, *_] = _mtmc_step_1(mtmc_device, h, 0)"));
  CHECK_FALSE(forward.find("y = _mtmc_torch.empty_strided") != std::string::npos);
  CHECK(Has(forward,
            "h = _mtmc_torch.empty_strided((8,), (1,), dtype=_mtmc_torch.float32, "
            "device=mtmc_device)"));
}

TEST_CASE("WriteForward keeps the precision of a library call", "[export]") {
  CHECK(Has(Forward(kProgram, {{"B", 8}}), R"(_MtmcLibraryCall("aten::mul", "", "tf32"))"));
}

TEST_CASE("WriteForward keeps the layout of a library call's results", "[export]") {
  std::string text = kProgram;
  const std::string line = "-> y\n";
  text.replace(text.find(line), line.size(), "-> y layout=channels_last\n");

  CHECK(Has(Forward(text, {{"B", 8}}),
            R"(_MtmcLibraryCall("aten::softmax", "", "default", is_channels_last=True))"));
}

TEST_CASE("WriteForward gives scratch back after its last use", "[export]") {
  const std::string forward = Forward(kProgram, {{"B", 8}});

  CHECK(forward.find("del h") > forward.find("_mtmc_step_2(mtmc_device, h, 2)"));
  CHECK_FALSE(Has(forward, "del y"));
}

std::string Chain(int64_t bytes) {
  const std::string type = "f32[" + std::to_string(bytes / 4) + "]\n";
  return "//@ mtmc 1 opencl\n//@ input x f32[8]\n//@ weight w f32[8]\n//@ buffer h " + type +
         "//@ buffer g " + type + R"(//@ buffer k f32[8]
//@ output y f32[8]
//@ output m f32[8]
//@ launch f grid=8 block=1 args=(x, h)
//@ launch f grid=8 block=1 args=(h, g)
//@ launch f grid=8 block=1 args=(g, k)
//@ call aten::mul(w, k) -> y
//@ launch f grid=8 block=1 args=(y, m)
__kernel void f(__global const float* x, __global float* y) {
  y[get_global_id(0)] = x[get_global_id(0)];
}
)";
}

TEST_CASE("A plan waits for kernels on a CPU once before others read what they wrote", "[export]") {
  const std::string forward = Forward(Chain(64), {});

  CHECK(Has(forward, "_mtmc_step_2(g, k)\n    _mtmc_program.wait()\n    del h, g\n    [y, *_] = "));
  CHECK(Has(forward, "_mtmc_step_4(y, m)\n    _mtmc_program.wait()\n    mtmc_target_0.copy_(m)"));
}

TEST_CASE("A plan gives large scratch back before its end", "[export]") {
  const std::string forward = Forward(Chain(int64_t{100} << 20), {});

  CHECK(Has(forward, "_mtmc_step_1(h, g)\n    _mtmc_program.wait()\n    del h\n"));
}

TEST_CASE("WriteForward renames what Python would not take as a variable", "[export]") {
  const std::string forward = Forward(
      "//@ mtmc 1 cuda\n//@ input x f32[8]\n//@ weight w f32[8]\n//@ buffer lambda f32[8]\n"
      "//@ output y f32[8]\n//@ output m f32[8]\n//@ call aten::mul(x, w) -> lambda\n"
      "//@ call aten::neg(lambda) -> y\n//@ call aten::neg(y) -> m\n",
      {});

  CHECK(Has(forward, "(mtmc_device, lambda_)"));
}

TEST_CASE("A plan that is replayed writes its results where it is told to", "[export]") {
  const std::string plan =
      "//@ input x f32[8]\n//@ weight w f32[8]\n//@ buffer h f32[8]\n//@ output y f32[8]\n"
      "//@ output m f32[8]\n//@ launch f grid=8 block=1 args=(x, h)\n"
      "//@ launch f grid=8 block=1 args=(h, y)\n//@ launch f grid=8 block=1 args=(w, m)\n";
  const std::string kernel = "extern \"C\" __global__ void f(const float* x, float* y) {}\n";

  const std::string replayed = Forward("//@ mtmc 1 cuda\n" + plan + kernel, {});
  CHECK(Has(replayed, "y = _mtmc_program.result(0)"));
  CHECK(Has(replayed, "results=[((8,), (1,), _mtmc_torch.float32)])"));
  // What nobody gets is the plan's own.
  CHECK(Has(replayed, "h = _mtmc_torch.empty_strided("));
  CHECK(Has(replayed, "m = _mtmc_torch.empty_strided("));

  const std::string on_a_cpu =
      Forward("//@ mtmc 1 opencl\n" + plan +
                  "__kernel void f(__global const float* x, __global float* y) {}\n",
              {});
  CHECK(Has(on_a_cpu, "y = _mtmc_torch.empty_strided("));
}

TEST_CASE("WriteForward stores a changed buffer and returns the output", "[export]") {
  const std::string forward = Forward(kProgram, {{"B", 8}});

  CHECK(Has(forward, R"(module_2 = self._modules["bn"])"));
  CHECK(Has(forward, R"(targets = [_mtmc_buffer(module_2, "mean", arguments[0])])"));
  CHECK(Has(forward, "apart=[0], results=["));
  CHECK(Has(forward, "mtmc_target_0.copy_(m)"));
  CHECK(Has(forward, "return [y]\n"));
}

TEST_CASE("WriteForward looks each module up once and stores many buffers at once", "[export]") {
  const TensorType type{.shape = {8}};
  const TensorType count{.data_type = kernel::DataType::kI64, .shape = {}};
  Graph graph = MakeGraph();
  graph.outputs.resize(1);
  for (const std::string name : {"a", "b"}) {
    const std::string path = "layers.0." + name;
    graph.inputs.push_back(
        {.name = name, .kind = GraphInput::Kind::kBuffer, .type = type, .target = path});
    graph.outputs.push_back({.name = name + "_new",
                             .kind = GraphOutput::Kind::kBufferMutation,
                             .value = name + "_new",
                             .type = type,
                             .target = path});
  }
  graph.outputs.push_back({.name = "n",
                           .kind = GraphOutput::Kind::kBufferMutation,
                           .value = "n",
                           .type = count,
                           .target = "layers.0.n"});
  const kernel::ParseResult parsed = kernel::ParseProgram(
      "//@ mtmc 1 cuda\n//@ input x f32[8]\n//@ weight a f32[8]\n//@ weight b f32[8]\n"
      "//@ output y f32[8]\n//@ output a_new f32[8]\n//@ output b_new f32[8]\n"
      "//@ output n i64[]\n//@ call aten::neg(x) -> y\n//@ call aten::neg(a) -> a_new\n"
      "//@ call aten::neg(b) -> b_new\n//@ call aten::argmax(b) -> n\n");
  REQUIRE(parsed.program);

  const auto forward = WriteForward(*parsed.program, graph, {});

  REQUIRE(forward.ok());
  CHECK(Has(*forward,
            "module_1 = self._modules[\"layers\"]\n"
            "        module_2 = module_1._modules[\"0\"]\n"));
  CHECK(Has(*forward, R"(targets = [inputs[1], inputs[2], _mtmc_buffer(module_2, "n", )"));
  CHECK(Has(*forward, "_mtmc_copy([mtmc_target_0, mtmc_target_1], [a_new, b_new])"));
  CHECK(Has(*forward, "mtmc_target_2.copy_(n)"));
  CHECK(Has(*forward, "apart=[2], results=["));
}

TEST_CASE("WriteForward finds nested arguments and refuses other plain ones", "[export]") {
  using Kind = kernel::Structure::Container::Kind;
  using kernel::Structure;
  const kernel::ParseResult parsed = kernel::ParseProgram(kProgram);
  REQUIRE(parsed.program);
  Graph graph = MakeGraph();
  const Structure list{Structure::Container{
      .kind = Kind::kList, .items = {{Structure::InputName{"x"}}, {Structure::None()}}}};
  graph.arguments = {
      {int64_t{3}},
      {Structure::Container{
          .kind = Kind::kDictionary, .keys = {{std::string("deep")}}, .items = {list}}}};

  const auto forward = WriteForward(*parsed.program, graph, {{"B", 8}});

  REQUIRE(forward.ok());
  CHECK(Has(*forward, "if keywords or len(arguments) != 2:\n"));
  CHECK(Has(*forward, R"(if not (arguments[0] == 3 and len(arguments[1]) == 1 and )"
                      R"(len(arguments[1]["deep"]) == 2 and arguments[1]["deep"][1] is None):)"));
  CHECK(Has(*forward, "    arguments[1][\"deep\"][0],  # x\n"));
  CHECK(Has(*forward, R"(_mtmc_buffer(module_2, "mean", arguments[1]["deep"][0]))"));
}

TEST_CASE("WriteForward returns what the model returns", "[export]") {
  using Kind = kernel::Structure::Container::Kind;
  using kernel::Structure;
  const kernel::ParseResult parsed = kernel::ParseProgram(kProgram);
  REQUIRE(parsed.program);
  Graph graph = MakeGraph();
  const Structure y{Structure::OutputName{"y"}};
  const Structure pair{Structure::Container{.kind = Kind::kNamedTuple,
                                            .module = "torch.return_types",
                                            .class_name = "max",
                                            .keys = {},
                                            .items = {y, {Structure::InputName{"w"}}}}};
  const Structure own{Structure::Container{.kind = Kind::kDataclass,
                                           .module = "",
                                           .class_name = "Model.Output",
                                           .keys = {{std::string("f")}},
                                           .items = {{2.0}}}};
  graph.result = Structure{Structure::Container{
      .kind = Kind::kDictionary,
      .module = "",
      .class_name = "",
      .keys = {{std::string("a\"\u00e9")}, {int64_t{2}}, {true}, {Structure::None()}},
      .items = {pair, own, y, {Structure::Container{.items = {y}}}}}};

  const auto forward = WriteForward(*parsed.program, graph, {{"B", 8}});

  REQUIRE(forward.ok());
  CHECK(Has(*forward, "_mtmc_class_0 = _mtmc_class(\"torch.return_types\", \"max\")\n"));
  CHECK(Has(*forward, "_mtmc_class_1 = Model.Output\n"));
  CHECK(Has(*forward,
            "return {\"a\\\"\u00e9\": _mtmc_class_0._make((results[0], "
            R"(module_1._parameters["w"])), )"
            R"(2: _mtmc_dataclass(_mtmc_class_1, {"f": 2.0}), )"
            "True: results[0], None: (results[0],)}\n"));
}

TEST_CASE("WriteForward refuses a program without an output of the problem", "[export]") {
  const kernel::ParseResult parsed = kernel::ParseProgram(
      "//@ mtmc 1 cuda\n//@ input x f32[8]\n//@ output y f32[8]\n//@ call aten::relu(x) -> y\n");
  REQUIRE(parsed.program);

  CHECK_FALSE(WriteForward(*parsed.program, MakeGraph(), {}).ok());
}

}  // namespace
}  // namespace mtmc::client
