// SPDX-License-Identifier: Apache-2.0
#include "policy/rules/search_state_proto.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "google/protobuf/text_format.h"
#include "mtmc/v1/policy.pb.h"

namespace mtmc::policy {
namespace {

v1::ChooseActionRequest Request(const std::string& text) {
  v1::ChooseActionRequest request;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &request));
  return request;
}

constexpr char kRequest[] = R"pb(
  search_state {
    graph {
      inputs {
        name: "x"
        type {
          data_type: DATA_TYPE_F32
          shape: [ 8, 16 ]
        }
      }
      nodes {
        name: "gelu"
        op: "aten::gelu.default"
        arguments { value: "x" }
        arguments { string_value: "none" }
        results: "gelu"
        result_types {
          data_type: DATA_TYPE_F32
          shape: [ 8, 16 ]
        }
        line: 21
      }
      outputs {
        name: "y"
        value: "gelu"
        type {
          data_type: DATA_TYPE_F32
          shape: [ 8, 16 ]
        }
      }
    }
    device { product: "NVIDIA H200" dialects: DIALECT_CUDA has_library_calls: true }
    history { action: "tile gelu" outcome: "failed" }
    precision: PRECISION_TF32
  }
  actions {
    type: TYPE_VECTORIZE
    region { kernels: "gelu" nodes: "gelu" }
    text: "vectorize gelu"
  }
  actions { type: TYPE_STOP text: "stop" }
  temperature: 0.5
)pb";

TEST_CASE("FromProto makes a readable listing of the graph", "[policy]") {
  const absl::StatusOr<Query> query = FromProto(Request(kRequest));

  REQUIRE(query.ok());
  REQUIRE(query->search_state.ops.size() == 1);
  CHECK(query->search_state.ops[0].listing ==
        "gelu: f32[8,16] = aten::gelu.default(x, 'none')  # line 21");
  CHECK(query->search_state.ops[0].result_bytes == 512);
  CHECK(query->search_state.signature ==
        std::vector<std::string>{"input x: f32[8,16]", "output y: f32[8,16] = gelu"});
}

TEST_CASE("FromProto keeps what the rules decide by", "[policy]") {
  const absl::StatusOr<Query> query = FromProto(Request(kRequest));

  REQUIRE(query.ok());
  CHECK(query->search_state.device.is_cuda);
  CHECK(query->search_state.precision == PrecisionClass::kTf32);
  CHECK(query->actions[0].type == ActionType::kVectorize);
  CHECK(query->actions[1].type == ActionType::kStop);
  CHECK_FALSE(query->search_state.history[0].speedup.has_value());
}

TEST_CASE("FromProto refuses a request that no policy can answer", "[policy]") {
  const std::string text = GENERATE(std::string(""), std::string("actions { text: 'x' }"),
                                    std::string("actions { type: 99 }"),
                                    std::string("actions { type: TYPE_STOP } temperature: -1"),
                                    std::string("actions { type: TYPE_STOP } temperature: nan"));
  CAPTURE(text);

  CHECK(FromProto(Request(text)).status().code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("FromProto survives sizes that overflow", "[policy]") {
  v1::SearchState state;
  v1::TensorType* type = state.mutable_graph()->add_nodes()->add_result_types();
  type->set_data_type(v1::DATA_TYPE_F64);
  for (int i = 0; i < 8; ++i) type->add_shape(int64_t{1} << 62);

  CHECK(FromProto(state).ops[0].result_bytes > 0);
}

TEST_CASE("ToProto draws by the seed", "[policy]") {
  const Distribution distribution = {.scores = {0, 1}, .probabilities = {0, 1}, .token_counts = {}};

  const v1::ChooseActionResponse response = ToProto(distribution, 7);

  CHECK(response.chosen() == 1);
  CHECK(response.probabilities_size() == 2);
}

TEST_CASE("FromProto keeps the counters of the plan and of each kernel", "[policy]") {
  v1::ChooseActionRequest request = Request(kRequest);
  v1::Profile& profile = *request.mutable_search_state()->mutable_evaluation()->mutable_profile();
  (*profile.mutable_metrics())["dram_bytes"] = 7;
  v1::KernelActivity& kernel = *profile.add_kernels();
  kernel.set_kernel("gelu");
  (*kernel.mutable_metrics())["dram_bytes"] = 5;

  const absl::StatusOr<Query> query = FromProto(request);

  REQUIRE(query.ok());
  CHECK(query->search_state.evaluation.metrics.at("dram_bytes") == 7);
  REQUIRE(query->search_state.evaluation.kernels.size() == 1);
  CHECK(query->search_state.evaluation.kernels[0].metrics.at("dram_bytes") == 5);
}

}  // namespace
}  // namespace mtmc::policy
