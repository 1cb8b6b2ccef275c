// SPDX-License-Identifier: Apache-2.0
#include "kernel/engine/engine.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "kernel/action/class_actions.h"
#include "kernel/action/own_kernel.h"
#include "kernel/action/rewritings.h"
#include "kernel/action/together.h"
#include "kernel/emit/program_writer.h"
#include "kernel/graph/text.h"
#include "kernel/rewrite/rewrite.h"

namespace mtmc::kernel {
namespace {

// A graph after rewrites, with its loops and who reads whom, and the options' device. Immovable:
// the context refers to the other members.
class Session {
 public:
  // `graph` and `options` must outlive the session.
  static absl::StatusOr<std::unique_ptr<Session>> Create(
      const Graph& graph, const EngineOptions& options,
      const std::vector<RewriteStep>& rewrites = {}) {
    MTMC_ASSIGN_OR_RETURN(Graph rewritten, ApplyRewrites(graph, rewrites));
    MTMC_ASSIGN_OR_RETURN(LoopNest nest, LowerToLoops(rewritten));
    return std::unique_ptr<Session>(
        new Session(graph, options, rewrites, std::move(rewritten), std::move(nest)));
  }

  // One for the rewrites of a schedule, which it checks.
  static absl::StatusOr<std::pair<std::unique_ptr<Session>, Schedule>> Open(
      const Graph& graph, const std::string& schedule, const EngineOptions& options) {
    MTMC_ASSIGN_OR_RETURN(Schedule parsed, ParseSchedule(schedule));
    MTMC_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                          Create(graph, options, parsed.rewrites));
    MTMC_RETURN_IF_ERROR(CheckSchedule(session->context_, parsed));
    return std::pair(std::move(session), std::move(parsed));
  }

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const ScheduleContext& context() const { return context_; }

  // The program of a schedule, whatever its rewrites.
  absl::StatusOr<EngineProgram> Print(const Schedule& schedule) const {
    if (schedule.rewrites != context_.rewrites) {
      MTMC_ASSIGN_OR_RETURN(const std::unique_ptr<Session> other,
                            Create(original_, options_, schedule.rewrites));
      return other->Print(schedule);
    }
    MTMC_ASSIGN_OR_RETURN(std::string text,
                          WriteProgram(graph_, nest_, index_, schedule, context_.target));
    return EngineProgram{.text = std::move(text), .schedule = ToText(schedule)};
  }

 private:
  Session(const Graph& graph, const EngineOptions& options,
          const std::vector<RewriteStep>& rewrites, Graph rewritten, LoopNest nest)
      : original_(graph),
        options_(options),
        graph_(std::move(rewritten)),
        nest_(std::move(nest)),
        index_(graph_, nest_),
        context_{.graph = graph_,
                 .nest = nest_,
                 .index = index_,
                 .target = options.target,
                 .allow_library = options.allow_library,
                 .rewrites = rewrites} {}

  const Graph& original_;
  const EngineOptions& options_;
  const Graph graph_;
  const LoopNest nest_;
  const NestIndex index_;
  const ScheduleContext context_;
};

// Every legal action, `stop` last; those on all equal groups first, for a single one is a small
// part of a network.
std::vector<LegalAction> Enumerate(const ScheduleContext& context, const Schedule& schedule,
                                   const EngineOptions& options) {
  std::vector<LegalAction> actions =
      EnumerateActions(context, schedule,
                       {.allow_library = options.allow_library, .allow_tf32 = options.allow_tf32});
  std::vector<LegalAction> own = EnumerateOwnKernels(context, schedule);
  actions.insert(actions.end() - 1, std::make_move_iterator(own.begin()),
                 std::make_move_iterator(own.end()));
  std::vector<LegalAction> simpler = EnumerateSimplifications(context, schedule);
  actions.insert(actions.begin(), std::make_move_iterator(simpler.begin()),
                 std::make_move_iterator(simpler.end()));
  std::vector<LegalAction> layouts = EnumerateLayouts(context, schedule);
  actions.insert(actions.end() - 1, std::make_move_iterator(layouts.begin()),
                 std::make_move_iterator(layouts.end()));
  std::vector<LegalAction> classes = EnumerateClassActions(context, schedule, actions);
  actions.insert(actions.begin(), std::make_move_iterator(classes.begin()),
                 std::make_move_iterator(classes.end()));
  return actions;
}

std::vector<EngineAction> WithoutEffects(std::vector<LegalAction> legal) {
  std::vector<EngineAction> actions;
  actions.reserve(legal.size());
  for (LegalAction& one : legal) actions.push_back(std::move(one.action));
  return actions;
}

const LegalAction* Find(const std::vector<LegalAction>& actions, const std::string& text) {
  const auto found = std::find_if(actions.begin(), actions.end(), [&](const LegalAction& legal) {
    return legal.action.text == text;
  });
  return found == actions.end() ? nullptr : &*found;
}

absl::Status NotLegal(const std::string& action_text) {
  return absl::NotFoundError(
      Concat("the action \"", action_text, "\" is not legal for this program"));
}

// What sorting takes for granted.
absl::Status CheckNodes(const ScheduleContext& context, const Schedule& schedule) {
  for (const KernelGroup& group : schedule.groups) {
    for (const std::string& node : group.nodes) {
      if (context.index.PositionOf(node) < 0) {
        return absl::InvalidArgumentError(
            Concat("schedule names \"", node, "\", which is no node of the graph"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EngineProgram> CreateProgram(const Graph& graph, const EngineOptions& options) {
  MTMC_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(graph, options));
  MTMC_ASSIGN_OR_RETURN(const Schedule schedule,
                        MakeStartSchedule(session->context(), options.start));
  return session->Print(schedule);
}

absl::StatusOr<std::vector<EngineAction>> ListActions(const Graph& graph,
                                                      const std::string& schedule,
                                                      const EngineOptions& options) {
  MTMC_ASSIGN_OR_RETURN(const auto opened, Session::Open(graph, schedule, options));
  const auto& [session, parsed] = opened;
  return WithoutEffects(Enumerate(session->context(), parsed, options));
}

absl::StatusOr<std::vector<EngineAction>> ListRestarts(const Graph& graph,
                                                       const std::string& schedule,
                                                       const EngineOptions& options) {
  MTMC_ASSIGN_OR_RETURN(const auto opened, Session::Open(graph, schedule, options));
  const auto& [session, parsed] = opened;
  return WithoutEffects(EnumerateRestarts(session->context(), parsed));
}

absl::StatusOr<EngineProgram> ApplyAction(const Graph& graph, const std::string& schedule,
                                          const std::string& action_text,
                                          const EngineOptions& options) {
  MTMC_ASSIGN_OR_RETURN(const auto opened, Session::Open(graph, schedule, options));
  const auto& [session, parsed] = opened;
  const std::vector<LegalAction> actions = Enumerate(session->context(), parsed, options);
  if (const LegalAction* legal = Find(actions, action_text)) return session->Print(legal->apply());
  const std::vector<LegalAction> restarts = EnumerateRestarts(session->context(), parsed);
  if (const LegalAction* legal = Find(restarts, action_text)) return session->Print(legal->apply());
  return NotLegal(action_text);
}

absl::StatusOr<EngineProgram> ApplyTogether(const Graph& graph, const std::string& schedule,
                                            const std::vector<std::string>& action_texts,
                                            const EngineOptions& options) {
  MTMC_ASSIGN_OR_RETURN(const auto opened, Session::Open(graph, schedule, options));
  const auto& [session, parsed] = opened;
  const std::vector<LegalAction> actions = Enumerate(session->context(), parsed, options);
  std::vector<std::function<Schedule()>> steps;
  for (const std::string& text : action_texts) {
    const LegalAction* legal = Find(actions, text);
    if (legal == nullptr) return NotLegal(text);
    steps.push_back(legal->apply);
  }
  MTMC_ASSIGN_OR_RETURN(const Schedule together, ApplyTogether(session->context(), parsed, steps));
  return session->Print(together);
}

absl::StatusOr<EngineProgram> PrintSchedule(const Graph& graph, const std::string& schedule,
                                            const EngineOptions& options) {
  MTMC_ASSIGN_OR_RETURN(Schedule parsed, ParseSchedule(schedule));
  MTMC_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                        Session::Create(graph, options, parsed.rewrites));
  MTMC_RETURN_IF_ERROR(CheckNodes(session->context(), parsed));
  parsed = ReplaceGroups(session->context(), parsed, {}, {});
  MTMC_RETURN_IF_ERROR(CheckSchedule(session->context(), parsed));
  return session->Print(parsed);
}

}  // namespace mtmc::kernel
