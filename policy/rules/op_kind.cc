// SPDX-License-Identifier: Apache-2.0
#include "policy/rules/op_kind.h"

#include <array>

namespace mtmc::policy {
namespace {

struct Row {
  // Matches a whole base name, or a prefix when it ends in `*`.
  std::string_view pattern;
  OpKind kind;
};

// The first match wins, so the exact names that a later prefix would swallow
// come first.
constexpr auto kRows = std::to_array<Row>({
    {"mm", OpKind::kContraction},
    {"bmm", OpKind::kContraction},
    {"addmm", OpKind::kContraction},
    {"baddbmm", OpKind::kContraction},
    {"addbmm", OpKind::kContraction},
    {"mv", OpKind::kContraction},
    {"dot", OpKind::kContraction},
    {"matmul", OpKind::kContraction},
    {"linear", OpKind::kContraction},
    {"einsum", OpKind::kContraction},
    {"bilinear", OpKind::kContraction},
    {"conv*", OpKind::kContraction},
    {"_convolution*", OpKind::kContraction},
    {"scaled_dot_product_attention*", OpKind::kContraction},
    {"lstm*", OpKind::kContraction},
    {"gru*", OpKind::kContraction},
    {"rnn*", OpKind::kContraction},
    {"max_pool*", OpKind::kWindow},
    {"avg_pool*", OpKind::kWindow},
    {"adaptive_*", OpKind::kWindow},
    {"maximum", OpKind::kPointwise},
    {"minimum", OpKind::kPointwise},
    {"sum*", OpKind::kReduction},
    {"mean*", OpKind::kReduction},
    {"max*", OpKind::kReduction},
    {"min*", OpKind::kReduction},
    {"amax", OpKind::kReduction},
    {"amin", OpKind::kReduction},
    {"arg*", OpKind::kReduction},
    {"prod*", OpKind::kReduction},
    {"any*", OpKind::kReduction},
    {"all*", OpKind::kReduction},
    {"cum*", OpKind::kReduction},
    {"logsumexp", OpKind::kReduction},
    {"softmax*", OpKind::kReduction},
    {"_softmax", OpKind::kReduction},
    {"log_softmax*", OpKind::kReduction},
    {"_log_softmax", OpKind::kReduction},
    {"var*", OpKind::kReduction},
    {"std*", OpKind::kReduction},
    {"norm*", OpKind::kReduction},
    {"linalg_vector_norm", OpKind::kReduction},
    {"*_norm", OpKind::kReduction},
    {"*_loss", OpKind::kReduction},
    {"view*", OpKind::kMovement},
    {"reshape", OpKind::kMovement},
    {"flatten*", OpKind::kMovement},
    {"permute", OpKind::kMovement},
    {"transpose", OpKind::kMovement},
    {"t", OpKind::kMovement},
    {"unsqueeze", OpKind::kMovement},
    {"squeeze*", OpKind::kMovement},
    {"expand", OpKind::kMovement},
    {"slice*", OpKind::kMovement},
    {"select*", OpKind::kMovement},
    {"cat", OpKind::kMovement},
    {"stack", OpKind::kMovement},
    {"split*", OpKind::kMovement},
    {"chunk", OpKind::kMovement},
    {"clone", OpKind::kMovement},
    {"contiguous", OpKind::kMovement},
    {"copy*", OpKind::kMovement},
    {"roll", OpKind::kMovement},
    {"flip", OpKind::kMovement},
});

// `aten::max_pool2d.default` to `max_pool2d`.
std::string_view BaseName(std::string_view op) {
  if (const size_t scope = op.rfind("::"); scope != op.npos) op.remove_prefix(scope + 2);
  return op.substr(0, op.find('.'));
}

bool Matches(std::string_view pattern, std::string_view name) {
  if (pattern.front() == '*') return name.ends_with(pattern.substr(1));
  if (pattern.back() == '*') return name.starts_with(pattern.substr(0, pattern.size() - 1));
  return name == pattern;
}

}  // namespace

OpKind ClassifyOp(std::string_view op) {
  const std::string_view name = BaseName(op);
  for (const Row& row : kRows) {
    if (Matches(row.pattern, name)) return row.kind;
  }
  return OpKind::kPointwise;
}

}  // namespace mtmc::policy
