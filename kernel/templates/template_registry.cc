// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/template_registry.h"

#include <algorithm>
#include <iterator>

#include "common/base/annotate.h"
#include "common/base/check.h"
#include "kernel/graph/text.h"
#include "kernel/templates/contraction/contraction_template.h"
#include "kernel/templates/library/library_template.h"
#include "kernel/templates/pointwise/pointwise_template.h"
#include "kernel/templates/row/row_template.h"
#include "kernel/templates/scan/scan_template.h"
#include "kernel/templates/split_product/split_product_template.h"

namespace mtmc::kernel {
namespace {

// A new template is a folder and its line here.
constexpr const KernelTemplate* kTemplates[] = {
    &kPointwiseTemplate, &kContractionTemplate,  &kRowTemplate,
    &kScanTemplate,      &kSplitProductTemplate, &kLibraryTemplate,
};

const KernelTemplate* FindFirst(const GroupView& view, const EmitTarget& target, bool is_call) {
  const auto* found =
      std::find_if(std::begin(kTemplates), std::end(kTemplates), [&](const KernelTemplate* one) {
        return one->is_call == is_call && one->tier.empty() && one->accepts(view, target);
      });
  return found == std::end(kTemplates) ? nullptr : *found;
}

absl::Status UnknownTemplate(const KernelGroup& group) {
  std::vector<std::string> names;
  for (const KernelTemplate* known : kTemplates) names.emplace_back(known->name);
  return absl::InvalidArgumentError(Concat("group \"", group.name, "\" has the unknown template \"",
                                           group.template_name, "\", there are ",
                                           Join(names, ", ")));
}

}  // namespace

std::span<const KernelTemplate* const> Templates() { return kTemplates; }

const KernelTemplate* FindTemplate(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kTemplates), std::end(kTemplates),
                   [name](const KernelTemplate* known) { return known->name == name; });
  return found == std::end(kTemplates) ? nullptr : *found;
}

const KernelTemplate& TemplateOf(const KernelGroup& group) {
  const KernelTemplate* found = FindTemplate(group.template_name);
  MTMC_CHECK(found != nullptr);
  return *found;
}

const KernelTemplate* FindOwnTemplate(const GroupView& view, const EmitTarget& target) {
  return FindFirst(view, target, /*is_call=*/false);
}

const KernelTemplate* FindTier(const GroupView& view, const EmitTarget& target) {
  const auto* found =
      std::find_if(std::begin(kTemplates), std::end(kTemplates), [&](const KernelTemplate* one) {
        return !one->tier.empty() && one->accepts(view, target) && one->is_promising(view, target);
      });
  return found == std::end(kTemplates) ? nullptr : *found;
}

const KernelTemplate* FindCall(const GroupView& view, const EmitTarget& target) {
  return FindFirst(view, target, /*is_call=*/true);
}

GroupView ViewOf(const Graph& graph, const LoopNest& nest, const NestIndex& index,
                 const KernelGroup& group) {
  const KernelTemplate* printer = FindTemplate(group.template_name);
  const bool is_call = printer != nullptr && printer->is_call;
  return MakeGroupView(graph, nest, index, group,
                       is_call ? ArgumentUse::kWhole : ArgumentUse::kElements);
}

KernelGroup WithAllKnobs(const GroupView& view, const EmitTarget& target) {
  KernelGroup complete = *view.group;
  for (const auto& [knob, value] : TemplateOf(complete).knobs().Defaults(view, target)) {
    complete.knobs.emplace(knob, value);
  }
  return complete;
}

absl::Status CheckGroup(const GroupView& view, const EmitTarget& target, const KnobValues& tune) {
  const KernelGroup& group = *view.group;
  const KernelTemplate* printer = FindTemplate(group.template_name);
  if (printer == nullptr) return UnknownTemplate(group);
  if (!printer->accepts(view, target)) {
    return absl::InvalidArgumentError(
        Concat("group \"", group.name, "\" does not fit the template ", printer->name));
  }
  if (!printer->is_call && group.precision != LibraryCall::Precision::kDefault) {
    return absl::InvalidArgumentError(
        Concat("group \"", group.name, "\" has a precision, which only library calls have"));
  }
  return base::Annotate(printer->knobs().Check(view, target, tune),
                        Concat("in group \"", group.name, "\""));
}

}  // namespace mtmc::kernel
