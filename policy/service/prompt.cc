// SPDX-License-Identifier: Apache-2.0
#include "policy/service/prompt.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/profile/profile_text.h"

namespace mtmc::policy {
namespace {

constexpr size_t kShortestPrompt = 1500;
// Longest line of a listing; longer ones are shapes of very many arguments.
constexpr size_t kLineBytes = 240;
// What is not a listing: headings, device, times, counters. Leaves something of
// kShortestPrompt.
constexpr size_t kFixedBytes = 860;

// At most `bytes` of `text`, cut where a character of UTF-8 begins.
std::string_view Clip(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

std::string Line(std::string_view text) { return std::string(Clip(text, kLineBytes)) + "\n"; }

// The lines joined, without those in the middle that exceed `bytes`: the
// beginning says what it is, the end is what was added last.
std::string Shorten(const std::vector<std::string>& lines, size_t bytes) {
  size_t total = 0;
  for (const std::string& line : lines) total += line.size();
  if (total <= bytes) return absl::StrJoin(lines, "");
  constexpr size_t kNoteBytes = 40;
  const size_t room = bytes > kNoteBytes ? bytes - kNoteBytes : 0;
  size_t head = 0;
  std::string first;
  while (head < lines.size() && first.size() + lines[head].size() <= room / 2)
    first += lines[head++];
  size_t tail = lines.size();
  std::string last;
  while (tail > head && last.size() + lines[tail - 1].size() + first.size() <= room) {
    last.insert(0, lines[--tail]);
  }
  return absl::StrCat(first, "... ", tail - head, " lines left out ...\n", last);
}

std::string DeviceLine(const DeviceRates& device) {
  std::string line = absl::StrCat("Device: ", device.product.empty() ? "unknown" : device.product,
                                  ", ", device.compute_units, " units");
  const auto add = [&line](double rate, double unit, const char* name) {
    if (rate > 0) absl::StrAppendFormat(&line, ", %.4g %s", rate / unit, name);
  };
  add(device.bytes_per_second, 1e9, "GB/s");
  add(device.fp32_flops_per_second, 1e12, "TFLOP/s fp32");
  add(device.tf32_flops_per_second, 1e12, "TFLOP/s tf32");
  if (device.has_library_calls) line += ", library calls";
  return std::string(Clip(line, 160)) + "\n";
}

const char* PrecisionName(PrecisionClass precision) {
  switch (precision) {
    case PrecisionClass::kStrict:
      return "strict";
    case PrecisionClass::kKernelBench:
      return "kernelbench";
    case PrecisionClass::kTf32:
      return "tf32";
    case PrecisionClass::kHalf:
      return "half";
  }
  return "kernelbench";
}

std::string EvaluationLines(const EvaluationSummary& evaluation) {
  std::string text;
  if (evaluation.repair) {
    absl::StrAppend(&text, "Failure: ", std::string(Clip(evaluation.failure, 120)), "\n");
  }
  if (evaluation.median_seconds) {
    absl::StrAppendFormat(&text, "Time: %.4g ms", *evaluation.median_seconds * 1e3);
    if (evaluation.speedup) absl::StrAppendFormat(&text, ", speedup %.3g", *evaluation.speedup);
    text += "\n";
  }
  if (!evaluation.limit.empty()) {
    absl::StrAppend(&text, "Limit: ", std::string(Clip(evaluation.limit, 16)));
    if (evaluation.speed_of_light_ratio) {
      absl::StrAppendFormat(&text, ", %.0f%% of the speed of light",
                            *evaluation.speed_of_light_ratio * 100);
    }
    text += "\n";
  }
  return text;
}

// The kernels that take the time, largest first.
std::string KernelLine(const EvaluationSummary& evaluation) {
  constexpr size_t kShown = 5;
  std::vector<KernelTime> kernels = evaluation.kernels;
  if (kernels.empty()) return "";
  std::stable_sort(kernels.begin(), kernels.end(), [](const KernelTime& a, const KernelTime& b) {
    return a.share_ratio > b.share_ratio;
  });
  kernels.resize(std::min(kernels.size(), kShown));
  const auto format = [](std::string* out, const KernelTime& kernel) {
    absl::StrAppendFormat(out, "%s %.0f%%", kernel.kernel, kernel.share_ratio * 100);
  };
  return absl::StrCat("Kernels: ", std::string(Clip(absl::StrJoin(kernels, ", ", format), 120)),
                      "\n");
}

// What the hardware counted, where it could.
std::string CountersLine(const EvaluationSummary& evaluation) {
  const std::string line = profile::CounterLine(evaluation.metrics);
  return line.empty() ? "" : absl::StrCat("Counters: ", std::string(Clip(line, 145)), "\n");
}

std::vector<std::string> ReferenceLines(const SearchState& search_state) {
  std::vector<std::string> lines;
  const auto add = [&](std::string_view kind) {
    for (const std::string& line : search_state.signature) {
      if (line.starts_with(kind)) lines.push_back(Line(line));
    }
  };
  add("input ");
  for (const GraphOp& op : search_state.ops) lines.push_back(Line(op.listing));
  add("output ");
  return lines;
}

std::vector<std::string> ProgramLines(std::string_view program) {
  std::vector<std::string> lines;
  while (!program.empty()) {
    const size_t end = program.find('\n');
    lines.push_back(Line(program.substr(0, end)));
    program = end == program.npos ? std::string_view() : program.substr(end + 1);
  }
  return lines;
}

std::vector<std::string> HistoryLines(const std::vector<Step>& history) {
  std::vector<std::string> lines;
  for (const Step& step : history) {
    std::string line = absl::StrCat(lines.size() + 1, ". ", step.action, ": ", step.outcome);
    if (step.speedup) absl::StrAppendFormat(&line, ", speedup %.3g", *step.speedup);
    lines.push_back(Line(line));
  }
  return lines;
}

std::vector<std::string> ActionLines(std::span<const Action> actions) {
  std::vector<std::string> lines;
  for (const Action& action : actions) lines.push_back(Line("- " + action.text));
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace

std::string MakePrompt(const SearchState& search_state, std::span<const Action> actions,
                       size_t max_bytes) {
  // Eighths of what the fixed part leaves: three for the program, two each for
  // reference and actions, one for the steps.
  const size_t eighth = (std::max(max_bytes, kShortestPrompt) - kFixedBytes) / 8;
  std::string prompt = absl::StrCat("Choose the next optimization of this program.\n",
                                    DeviceLine(search_state.device),
                                    "Precision: ", PrecisionName(search_state.precision), "\n");
  absl::StrAppend(&prompt, "Reference:\n", Shorten(ReferenceLines(search_state), 2 * eighth));
  absl::StrAppend(&prompt, "Program:\n", Shorten(ProgramLines(search_state.program), 3 * eighth));
  absl::StrAppend(&prompt, EvaluationLines(search_state.evaluation),
                  KernelLine(search_state.evaluation), CountersLine(search_state.evaluation));
  absl::StrAppend(&prompt, "Steps so far:\n", Shorten(HistoryLines(search_state.history), eighth));
  absl::StrAppend(&prompt, "Steps left: ", search_state.remaining_steps, "\n");
  absl::StrAppend(&prompt, "Legal actions:\n", Shorten(ActionLines(actions), 2 * eighth));
  return prompt + "Next action:";
}

}  // namespace mtmc::policy
