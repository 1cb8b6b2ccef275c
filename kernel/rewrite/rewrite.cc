// SPDX-License-Identifier: Apache-2.0
#include "kernel/rewrite/rewrite.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "kernel/graph/text.h"
#include "kernel/rewrite/rules.h"

namespace mtmc::kernel {
namespace {

// As many as a schedule may have: never reached by a model that somebody wrote.
constexpr size_t kMaxSteps = 256;

struct Found {
  const Rewrite* rewrite = nullptr;
  const GraphNode* node = nullptr;
  GraphEdit edit;
};

std::optional<GraphEdit> Try(const Rewrite& rewrite, const GraphUses& uses, const GraphNode& node) {
  try {
    return rewrite.find(uses, node);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::optional<Found> FindAt(const GraphUses& uses, const GraphNode& node, Rewrite::Kind kind) {
  for (const Rewrite& rewrite : Rewrites()) {
    if (rewrite.kind != kind) continue;
    if (std::optional<GraphEdit> edit = Try(rewrite, uses, node)) {
      return Found{.rewrite = &rewrite, .node = &node, .edit = *std::move(edit)};
    }
  }
  return std::nullopt;
}

// By the first rule that applies anywhere: what is reduced early needs none of the later ones.
std::optional<Found> FindFirst(const GraphUses& uses, Rewrite::Kind kind) {
  for (const Rewrite& rewrite : Rewrites()) {
    if (rewrite.kind != kind) continue;
    for (const GraphNode& node : uses.graph().nodes) {
      if (std::optional<GraphEdit> edit = Try(rewrite, uses, node)) {
        return Found{.rewrite = &rewrite, .node = &node, .edit = *std::move(edit)};
      }
    }
  }
  return std::nullopt;
}

absl::StatusOr<Graph> Apply(const Graph& graph, const RewriteStep& step) {
  const Rewrite* rewrite = FindRewrite(step.rewrite);
  if (rewrite == nullptr) {
    return absl::InvalidArgumentError(
        Concat("schedule names the rewrite ", Quoted(step.rewrite), ", which does not exist"));
  }
  const GraphUses uses(graph);
  for (const GraphNode& node : graph.nodes) {
    if (node.name != step.node) continue;
    if (std::optional<GraphEdit> edit = Try(*rewrite, uses, node)) {
      return ApplyEdit(graph, node, *std::move(edit));
    }
  }
  return absl::InvalidArgumentError(
      Concat("the rewrite ", step.rewrite, " does not apply to ", Quoted(step.node)));
}

}  // namespace

std::span<const Rewrite> Rewrites() {
  static constexpr Rewrite kRewrites[] = {
      {"one_element", "an axis of one element needs no reduction", FindOneElement},
      {"zero_difference", "a value less itself is zero", FindZeroDifference},
      {"diagonal_product", "a diagonal matrix scales", FindDiagonalProduct},
      {"reassociate", "a chain of products in the cheaper order", FindReassociation},
      {"triangle", "the kept columns of each block of rows alone", FindTriangle},
      {"reduce_first", "reduce before multiplying", FindReduceFirst},
      // Last, for what is reduced needs none.
      {"plain_convolution", "a transposed convolution as a plain one", FindPlainConvolution},
      {"channels_last", "channels last", FindChannelsLast, Rewrite::Kind::kLayout},
      {"pooling_channels_last", "channels last", FindPoolingChannelsLast, Rewrite::Kind::kLayout},
  };
  return kRewrites;
}

const Rewrite* FindRewrite(std::string_view name) {
  const auto found = std::find_if(Rewrites().begin(), Rewrites().end(),
                                  [name](const Rewrite& rewrite) { return rewrite.name == name; });
  return found == Rewrites().end() ? nullptr : &*found;
}

std::vector<RewriteStep> FindRewriteSteps(const Graph& graph, Rewrite::Kind kind) {
  std::vector<RewriteStep> steps;
  const GraphUses uses(graph);
  for (const GraphNode& node : graph.nodes) {
    const std::optional<Found> found = FindAt(uses, node, kind);
    if (found) steps.push_back({std::string(found->rewrite->name), node.name});
  }
  return steps;
}

std::vector<RewriteStep> FindAllRewriteSteps(const Graph& graph, Rewrite::Kind kind) {
  std::vector<RewriteStep> steps;
  Graph current = graph;
  while (steps.size() < kMaxSteps) {
    const GraphUses uses(current);
    std::optional<Found> found = FindFirst(uses, kind);
    if (!found) break;
    steps.push_back({std::string(found->rewrite->name), found->node->name});
    current = ApplyEdit(current, *found->node, std::move(found->edit));
  }
  return steps;
}

absl::StatusOr<Graph> ApplyRewrites(const Graph& graph, std::span<const RewriteStep> steps) {
  Graph current = graph;
  for (const RewriteStep& step : steps) {
    MTMC_ASSIGN_OR_RETURN(current, Apply(current, step));
  }
  return current;
}

}  // namespace mtmc::kernel
