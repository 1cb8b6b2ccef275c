// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernel/graph/graph.h"
#include "kernel/program/program.h"

namespace mtmc::gateway {

// What a coder may know of a device.
struct DeviceModel {
  kernel::Dialect dialect = kernel::Dialect::kOpenCl;
  int64_t max_threads_per_block = 1024;
  int64_t shared_bytes_per_block = int64_t{48} * 1024;
  int64_t compute_units = 1;
  // Threads in lockstep; 1 on a CPU device.
  int64_t warp_size = 1;
  int64_t vector_bytes = 16;
  int64_t cache_bytes = 0;
  // All facts for a prompt, one per line.
  std::string text;
};

// The problem and its conditions, the same for every step of a job.
struct CodingTask {
  kernel::Graph graph;
  DeviceModel device;
  bool allow_library = false;
  // The job's precision class is satisfied by TF32 library calls.
  bool allow_tf32 = false;
  // Name of the precision class, for a prompt.
  std::string precision;
  // Language model; empty means the gateway's default.
  std::string model;
  int64_t seed = 0;
  // Most tokens of one call, prompt and reply; 0 means the gateway's limit.
  int64_t max_tokens = 0;
  // The job that asks and who created it, for logs.
  std::string job;
  std::string creator;
  // When the caller stops waiting.
  absl::Time deadline = absl::InfiniteFuture();
};

// A program and, if the built-in engine printed it, its schedule.
struct CodedProgram {
  std::string text;
  std::string schedule;
};

// One optimization intent; the domain form of `mtmc.v1.Action`.
struct CodingAction {
  // `fuse`, `tile`, ..., `stop`: as in `v1::Action::Type`.
  std::string type;
  std::vector<std::string> kernels;
  std::vector<std::string> nodes;
  int first_line = 0;
  int last_line = 0;
  std::map<std::string, std::string> arguments;
  // Unique among the actions of one program.
  std::string text;
};

// What the evaluation of the current program said.
struct Feedback {
  enum class Outcome { kNone, kCorrect, kBuildFailed, kLaunchFailed, kWrongResult };
  Outcome outcome = Outcome::kNone;
  // Verdict, failure and compiler log: equal in every run of the job.
  std::string text;
  // Times and profile: different in every run.
  std::string measured_text;
};

struct TokenUse {
  int64_t input_tokens = 0;
  int64_t output_tokens = 0;
  // Empty when no model was asked.
  std::string model;
  // SHA-256 of what was asked (DigestOf in chat_model.h), in hexadecimal.
  std::string prompt_sha256;
  // In millionths of a US dollar; none where nobody has said what tokens cost.
  std::optional<int64_t> cost_micros;
};

// What was said to a language model (ToTranscript in chat_model.h) and what it said; the reply
// is empty where there was none.
struct Exchange {
  std::string prompt;
  std::string reply;
};

// Why a coder has no program. Costs the trial, not the job.
struct CoderFailure {
  // ILLEGAL_ACTION, REPLY_NOT_PARSED, REPLY_EMPTY, REPLY_TIMEOUT, UNSUPPORTED.
  std::string reason;
  std::string message;
};

struct CodingResult {
  std::variant<CodedProgram, CoderFailure> outcome;
  TokenUse token_use;
  // None when no model was asked.
  std::optional<Exchange> exchange;
};

// Implements one step. Thread-safe; blocks until the task's deadline at most.
// An error means that the caller or the environment is at fault; a coder that
// simply cannot returns a CoderFailure.
class MicroCoder {
 public:
  virtual ~MicroCoder() = default;

  // `builtin` or `llm`.
  virtual std::string name() const = 0;
  // One line for people.
  virtual std::string description() const = 0;

  // The program that a search starts from.
  virtual absl::StatusOr<CodingResult> CreateProgram(const CodingTask& task) = 0;

  // `program` after one action.
  virtual absl::StatusOr<CodingResult> ApplyAction(const CodingTask& task,
                                                   const CodedProgram& program,
                                                   const CodingAction& action,
                                                   const Feedback& feedback) = 0;

  // Legal actions in stable order, `stop` last.
  virtual absl::StatusOr<std::vector<CodingAction>> ListActions(const CodingTask& task,
                                                                const CodedProgram& program,
                                                                const Feedback& feedback) = 0;
};

}  // namespace mtmc::gateway
