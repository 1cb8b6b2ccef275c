// SPDX-License-Identifier: Apache-2.0
#include "kernel/engine/engine.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "kernel/emit/program_writer.h"
#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

// The graph's loops and who reads whom, with the options' device. Immovable: the context refers
// to the other members.
class Session {
 public:
  static absl::StatusOr<std::unique_ptr<Session>> Create(const Graph& graph,
                                                         const EngineOptions& options) {
    MTMC_ASSIGN_OR_RETURN(LoopNest nest, LowerToLoops(graph));
    return std::unique_ptr<Session>(new Session(graph, std::move(nest), options));
  }

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const ScheduleContext& context() const { return context_; }

  absl::StatusOr<EngineProgram> Print(const Schedule& schedule) const {
    MTMC_ASSIGN_OR_RETURN(std::string text,
                          WriteProgram(context_.graph, nest_, index_, schedule, context_.target));
    return EngineProgram{.text = std::move(text), .schedule = ToText(schedule)};
  }

  absl::StatusOr<Schedule> Parse(const std::string& text) const {
    MTMC_ASSIGN_OR_RETURN(Schedule schedule, ParseSchedule(text));
    MTMC_RETURN_IF_ERROR(CheckSchedule(context_, schedule));
    return schedule;
  }

 private:
  Session(const Graph& graph, LoopNest nest, const EngineOptions& options)
      : nest_(std::move(nest)),
        index_(graph, nest_),
        context_{.graph = graph,
                 .nest = nest_,
                 .index = index_,
                 .target = options.target,
                 .allow_library = options.allow_library} {}

  const LoopNest nest_;
  const NestIndex index_;
  const ScheduleContext context_;
};

ActionSpaceOptions SpaceOptions(const EngineOptions& options) {
  return {.allow_library = options.allow_library, .allow_tf32 = options.allow_tf32};
}

}  // namespace

absl::StatusOr<EngineProgram> CreateProgram(const Graph& graph, const EngineOptions& options) {
  MTMC_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(graph, options));
  MTMC_ASSIGN_OR_RETURN(const Schedule schedule, MakeNaiveSchedule(session->context()));
  return session->Print(schedule);
}

absl::StatusOr<std::vector<EngineAction>> ListActions(const Graph& graph,
                                                      const std::string& schedule,
                                                      const EngineOptions& options) {
  MTMC_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(graph, options));
  MTMC_ASSIGN_OR_RETURN(const Schedule parsed, session->Parse(schedule));
  std::vector<EngineAction> actions;
  for (LegalAction& legal : EnumerateActions(session->context(), parsed, SpaceOptions(options))) {
    actions.push_back(std::move(legal.action));
  }
  return actions;
}

absl::StatusOr<EngineProgram> ApplyAction(const Graph& graph, const std::string& schedule,
                                          const std::string& action_text,
                                          const EngineOptions& options) {
  MTMC_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(graph, options));
  MTMC_ASSIGN_OR_RETURN(const Schedule parsed, session->Parse(schedule));
  for (const LegalAction& legal :
       EnumerateActions(session->context(), parsed, SpaceOptions(options))) {
    if (legal.action.text == action_text) return session->Print(legal.apply());
  }
  return absl::NotFoundError(
      Concat("the action \"", action_text, "\" is not legal for this program"));
}

}  // namespace mtmc::kernel
