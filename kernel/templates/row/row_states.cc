// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/row/row_states.h"

#include <functional>

#include "kernel/graph/text.h"

namespace mtmc::kernel {

RowStates::RowStates(const std::vector<const Loop*>& level, const RowThreads& threads,
                     int64_t steps, KernelWriter& writer)
    : threads_(threads), writer_(writer) {
  for (const Loop* loop : level) {
    states_.push_back({Accumulator(*loop, writer.text()), writer.Fresh(loop->results[0])});
    Declare(states_.back());
  }
  if (steps > kMostInARow && !RunningSums().empty()) DeclareTotals();
}

Accumulator::Access RowStates::Scalar(const State& state) {
  return [&state](size_t field) { return state.name + state.accumulator.fields()[field].suffix; };
}

// Field of a lane; the lanes of a thread share one Welford count.
Accumulator::Access RowStates::Lane(const State& state, const std::string& lane) const {
  if (!threads_.has_lanes()) return Scalar(state);
  return [&state, lane](size_t field) {
    const std::string name = state.name + state.accumulator.fields()[field].suffix;
    if (state.accumulator.is_welford() && field == 2) return name + "_lane";
    return Concat(name, "_lane[", lane, "]");
  };
}

void RowStates::Merge(const State& state, const Accumulator::Access& to,
                      const Accumulator::Access& from) {
  const std::vector<std::string> lines = state.accumulator.Merge(to, from);
  const bool needs_scope = lines.size() > 1 && lines[0].starts_with("const ");
  if (needs_scope) writer_.Open("");
  for (const std::string& line : lines) writer_.Line(line);
  if (needs_scope) writer_.Close();
}

void RowStates::Declare(const State& state) {
  const auto& fields = state.accumulator.fields();
  for (size_t field = 0; field < fields.size(); ++field) {
    const std::string name = state.name + fields[field].suffix;
    const bool is_shared_count = state.accumulator.is_welford() && field == 2;
    if (!threads_.has_lanes()) {
      writer_.Line(Concat(fields[field].type, " ", name, " = ", fields[field].empty, ";"));
    } else if (is_shared_count) {
      writer_.Line(Concat(fields[field].type, " ", name, "_lane = 0;"));
    } else {
      writer_.Line(Concat(fields[field].type, " ", name, "_lane[", threads_.lanes, "];"));
      if (threads_.is_gpu) writer_.Unroll();
      writer_.Line(Concat("for (int v = 0; v < ", threads_.lanes, "; ++v) ", name,
                          "_lane[v] = ", fields[field].empty, ";"));
    }
  }
}

// Those whose rounding grows with the number of elements.
std::vector<const RowStates::State*> RowStates::RunningSums() const {
  std::vector<const State*> sums;
  for (const State& state : states_) {
    if (state.accumulator.is_running_sum()) sums.push_back(&state);
  }
  return sums;
}

Accumulator::Access RowStates::Total(const State& state) const {
  return [this, &state](size_t field) {
    const std::string name = state.name + state.accumulator.fields()[field].suffix + "_total";
    const bool is_shared_count = state.accumulator.is_welford() && field == 2;
    return threads_.has_lanes() && !is_shared_count ? name + "[v]" : name;
  };
}

void RowStates::OpenLanes() {
  if (!threads_.has_lanes()) return;
  if (threads_.is_gpu) writer_.Unroll();
  writer_.Open(Concat("for (int v = 0; v < ", threads_.lanes, "; ++v)"));
}

void RowStates::CloseLanes() {
  if (threads_.has_lanes()) writer_.Close();
}

void RowStates::DeclareTotals() {
  run_ = writer_.Fresh("run");
  writer_.Line(Concat("int ", run_, " = 0;"));
  for (const State* state : RunningSums()) {
    const auto& fields = state->accumulator.fields();
    for (size_t field = 0; field < fields.size(); ++field) {
      const std::string total = Total(*state)(field);
      const bool is_array = total.ends_with("]");
      const std::string name = state->name + fields[field].suffix + "_total";
      writer_.Line(is_array
                       ? Concat(fields[field].type, " ", name, "[", threads_.lanes, "];")
                       : Concat(fields[field].type, " ", name, " = ", fields[field].empty, ";"));
      if (!is_array) continue;
      OpenLanes();
      writer_.Line(Concat(total, " = ", fields[field].empty, ";"));
      CloseLanes();
    }
  }
}

void RowStates::EndElement() {
  if (run_.empty()) return;
  writer_.Open(Concat("if (++", run_, " == ", kBlockedRun, ")"));
  EndRun();
  writer_.Line(Concat(run_, " = 0;"));
  writer_.Close();
}

void RowStates::EndRun() {
  const auto is_shared = [this](const State& state, size_t field) {
    return threads_.has_lanes() && state.accumulator.is_welford() && field == 2;
  };
  OpenLanes();
  for (const State* state : RunningSums()) {
    const auto& fields = state->accumulator.fields();
    const Accumulator::Access total = Total(*state);
    const Accumulator::Access run = Lane(*state, "v");
    if (threads_.has_lanes() && state->accumulator.is_welford()) {
      // Merging counts on; the lanes' count does so once, behind them.
      const std::string count = state->name + "_n_here";
      writer_.Line(Concat(fields[2].type, " ", count, " = ", total(2), ";"));
      Merge(
          *state, [&](size_t field) { return field == 2 ? count : total(field); }, run);
    } else {
      Merge(*state, total, run);
    }
    for (size_t field = 0; field < fields.size(); ++field) {
      if (!is_shared(*state, field)) {
        writer_.Line(Concat(run(field), " = ", fields[field].empty, ";"));
      }
    }
  }
  CloseLanes();
  for (const State* state : RunningSums()) {
    if (!is_shared(*state, 2)) continue;
    const std::string count = Lane(*state, "v")(2);
    writer_.Line(Concat(Total(*state)(2), " += ", count, ";"));
    writer_.Line(Concat(count, " = 0;"));
  }
}

// The last run may be short.
void RowStates::TakeTotals() {
  EndRun();
  OpenLanes();
  for (const State* state : RunningSums()) {
    for (size_t field = 0; field < state->accumulator.fields().size(); ++field) {
      const std::string total = Total(*state)(field);
      if (!threads_.has_lanes() || total.ends_with("]")) {
        writer_.Line(Concat(Lane(*state, "v")(field), " = ", total, ";"));
      }
    }
  }
  CloseLanes();
  if (!threads_.has_lanes()) return;
  for (const State* state : RunningSums()) {
    if (!state->accumulator.is_welford()) continue;
    writer_.Line(Concat(Lane(*state, "v")(2), " = ", Total(*state)(2), ";"));
  }
}

// Lanes in halves, so that a compiler can merge many at once; a rest that is no
// power of two goes one by one.
void RowStates::MergeLanes() {
  int64_t count = threads_.lanes;
  for (const State& state : states_) {
    if (!state.accumulator.is_welford()) continue;
    // From here on each lane has a count of its own.
    const std::string name = Scalar(state)(2);
    writer_.Line(
        Concat(state.accumulator.fields()[2].type, " ", name, "_lanes[", threads_.lanes, "];"));
    if (threads_.is_gpu) writer_.Unroll();
    writer_.Line(Concat("for (int v = 0; v < ", threads_.lanes, "; ++v) ", name,
                        "_lanes[v] = ", name, "_lane;"));
  }
  const auto lane = [](const State& state, const std::string& at) -> Accumulator::Access {
    return [&state, at](size_t field) {
      const std::string name = state.name + state.accumulator.fields()[field].suffix;
      const bool is_count = state.accumulator.is_welford() && field == 2;
      return Concat(name, is_count ? "_lanes[" : "_lane[", at, "]");
    };
  };
  while (count > 1) {
    const int64_t half = count % 2 == 0 ? count / 2 : 1;
    const int64_t rest = count % 2 == 0 ? half : count - 1;
    if (threads_.is_gpu) writer_.Unroll();
    writer_.Open(Concat("for (int v = 0; v < ", rest, "; ++v)"));
    for (const State& state : states_) {
      Merge(state, lane(state, count % 2 == 0 ? "v" : "0"), lane(state, Concat("v + ", half)));
    }
    writer_.Close();
    count = half;
  }
  for (const State& state : states_) {
    const auto& fields = state.accumulator.fields();
    for (size_t field = 0; field < fields.size(); ++field) {
      writer_.Line(Concat(fields[field].type, " ", Scalar(state)(field), " = ",
                          lane(state, "0")(field), ";"));
    }
  }
}

void RowStates::MergeThreads() {
  if (threads_.is_alone()) return;
  if (writer_.text().is_cuda()) return MergeWarps();
  MergeShared();
}

// Within warps by exchange, then every thread merges the warps' results in the
// same order: all end with the same value.
void RowStates::MergeWarps() {
  writer_.Unroll();
  writer_.Open("for (int mask = 16; mask > 0; mask /= 2)");
  for (const State& state : states_) {
    const auto& fields = state.accumulator.fields();
    for (size_t field = 0; field < fields.size(); ++field) {
      const std::string name = Scalar(state)(field);
      writer_.Line(Concat("const ", fields[field].type, " ", name,
                          "_other = ", writer_.text().ShuffleXor(name, "mask"), ";"));
    }
    Merge(state, Scalar(state), [&](size_t field) { return Scalar(state)(field) + "_other"; });
  }
  writer_.Close();
  if (threads_.map.block == 32 && !threads_.is_block_tuned) return;
  const auto shared = [](const State& state, const std::string& at) -> Accumulator::Access {
    return [&state, at](size_t field) {
      return Concat(state.name, state.accumulator.fields()[field].suffix, "_warp[", at, "]");
    };
  };
  const auto each_field = [&](const std::function<void(const State&, size_t)>& visit) {
    for (const State& state : states_) {
      for (size_t field = 0; field < state.accumulator.fields().size(); ++field) {
        visit(state, field);
      }
    }
  };
  each_field([&](const State& state, size_t field) {
    writer_.Line(writer_.text().SharedArray(state.accumulator.fields()[field].type,
                                            Scalar(state)(field) + "_warp", "32"));
  });
  writer_.Open("if (thread % 32 == 0)");
  each_field([&](const State& state, size_t field) {
    writer_.Line(Concat(shared(state, "thread / 32")(field), " = ", Scalar(state)(field), ";"));
  });
  writer_.Close();
  writer_.Barrier();
  each_field([&](const State& state, size_t field) {
    writer_.Line(Concat(Scalar(state)(field), " = ", shared(state, "0")(field), ";"));
  });
  writer_.Open(Concat("for (int warp = 1; warp < ", threads_.count, " / 32; ++warp)"));
  for (const State& state : states_) Merge(state, Scalar(state), shared(state, "warp"));
  writer_.Close();
}

// A tree in shared memory over the threads, a power of two.
void RowStates::MergeShared() {
  const auto shared = [](const State& state, const std::string& at) -> Accumulator::Access {
    return [&state, at](size_t field) {
      return Concat(state.name, state.accumulator.fields()[field].suffix, "_all[", at, "]");
    };
  };
  for (const State& state : states_) {
    const auto& fields = state.accumulator.fields();
    for (size_t field = 0; field < fields.size(); ++field) {
      writer_.Line(writer_.text().SharedArray(fields[field].type, Scalar(state)(field) + "_all",
                                              threads_.count));
      writer_.Line(Concat(shared(state, "thread")(field), " = ", Scalar(state)(field), ";"));
    }
  }
  writer_.Barrier();
  writer_.Open(
      Concat("for (int half_count = ", threads_.count, " / 2; half_count > 0; half_count /= 2)"));
  writer_.Open("if (thread < half_count)");
  for (const State& state : states_) {
    Merge(state, shared(state, "thread"), shared(state, "thread + half_count"));
  }
  writer_.Close();
  writer_.Barrier();
  writer_.Close();
  for (const State& state : states_) {
    for (size_t field = 0; field < state.accumulator.fields().size(); ++field) {
      writer_.Line(Concat(Scalar(state)(field), " = ", shared(state, "0")(field), ";"));
    }
  }
}

// The same over the slices of columns that threads with equal rows hold.
void RowStates::MergeDepth() {
  const int64_t width = threads_.map.block / threads_.map.depth * threads_.lanes;
  const auto shared = [&](const State& state, const std::string& slice) -> Accumulator::Access {
    const std::string at = threads_.has_lanes() ? Concat("(", slice, ") * ", width, " + thread % ",
                                                         threads_.map.block / threads_.map.depth,
                                                         " * ", threads_.lanes, " + v")
                                                : Concat("(", slice, ") * ", width, " + thread % ",
                                                         threads_.map.block / threads_.map.depth);
    return [&state, at](size_t field) {
      return Concat(state.name, state.accumulator.fields()[field].suffix, "_all[", at, "]");
    };
  };
  const auto each_lane = [&](const std::function<void(const State&, size_t)>& visit) {
    if (threads_.has_lanes())
      writer_.Open(Concat("for (int v = 0; v < ", threads_.lanes, "; ++v)"));
    for (const State& state : states_) {
      for (size_t field = 0; field < state.accumulator.fields().size(); ++field) {
        visit(state, field);
      }
    }
    if (threads_.has_lanes()) writer_.Close();
  };
  for (const State& state : states_) {
    for (size_t field = 0; field < state.accumulator.fields().size(); ++field) {
      writer_.Line(writer_.text().SharedArray(state.accumulator.fields()[field].type,
                                              Scalar(state)(field) + "_all",
                                              std::to_string(width * threads_.map.depth)));
    }
  }
  each_lane([&](const State& state, size_t field) {
    writer_.Line(Concat(shared(state, "slice")(field), " = ", Lane(state, "v")(field), ";"));
  });
  writer_.Barrier();
  writer_.Open(Concat("for (int half_count = ", threads_.map.depth / 2,
                      "; half_count > 0; half_count /= 2)"));
  writer_.Open("if (slice < half_count)");
  if (threads_.has_lanes()) writer_.Open(Concat("for (int v = 0; v < ", threads_.lanes, "; ++v)"));
  for (const State& state : states_) {
    Merge(state, shared(state, "slice"), shared(state, "slice + half_count"));
  }
  if (threads_.has_lanes()) writer_.Close();
  writer_.Close();
  writer_.Barrier();
  writer_.Close();
  each_lane([&](const State& state, size_t field) {
    writer_.Line(Concat(Lane(state, "v")(field), " = ", shared(state, "0")(field), ";"));
  });
}

void RowStates::CountElement() {
  for (const State& state : states_) {
    if (!state.accumulator.is_welford()) continue;
    const std::string count = Lane(state, "v")(2);
    writer_.Line(Concat(count, " += 1;"));
    writer_.Line(Concat("const ", state.accumulator.fields()[0].type, " ", state.name,
                        "_inverse = 1 / ", count, ";"));
  }
}

void RowStates::AddElement(const ScalarPtr& row, const ScalarPtr& column) {
  for (const State& state : states_) {
    const Accumulator& accumulator = state.accumulator;
    const std::vector<ScalarPtr> axes = AxesAt(accumulator.loop(), row, column, writer_.extents());
    Accumulator::Element element{.value = writer_.Body(accumulator.loop().body, axes)};
    if (accumulator.needs_index()) element.index = writer_.Index(column);
    if (accumulator.is_welford()) element.inverse_count = state.name + "_inverse";
    const std::vector<std::string> lines = accumulator.Add(Lane(state, "v"), element);
    const bool needs_scope = lines.size() > 1 && states_.size() > 1;
    if (needs_scope) writer_.Open("");
    for (const std::string& line : lines) writer_.Line(line);
    if (needs_scope) writer_.Close();
  }
}

void RowStates::MergeBlock() {
  if (!run_.empty()) TakeTotals();
  if (threads_.by_row()) {
    if (threads_.map.depth > 1) MergeDepth();
    return;
  }
  if (threads_.has_lanes()) MergeLanes();
  MergeThreads();
}

}  // namespace mtmc::kernel
