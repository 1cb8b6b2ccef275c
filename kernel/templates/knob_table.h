// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kernel/schedule/schedule.h"
#include "kernel/view/emit_target.h"
#include "kernel/view/group_view.h"

namespace mtmc::kernel {

// The values that a knob may have on some device, for some group.
struct KnobDomain {
  int64_t least = 0;
  int64_t most = 1;
  bool is_power_of_two = false;

  bool Contains(int64_t value) const;
  // `0 or 1`, `4 to 16`, `a power of two from 4 to 16`.
  std::string ToText() const;
};

// One choice that a schedule makes for a group.
struct Knob {
  std::string_view name;
  // What a move that changes this knob and none before it in the table is
  // called: `tile`, `vectorize`, `reorder` or `split`.
  std::string_view action;
  KnobDomain domain;
};

// A change of knobs that an action stands for.
struct KnobMove {
  std::string action;
  // Short, such as `to 128x64 blocks with 8x4 micro-tiles`.
  std::string text;
  Knobs knobs;
};

// One value range of a knob that `tune` may sweep.
struct KnobSweep {
  std::string knob;
  std::vector<int64_t> values;
};

// `tune` lines of one group: knob to values.
using KnobValues = std::map<std::string, std::vector<int64_t>, std::less<>>;

// All that is known of a template's knobs: which there are, what they may be, what
// they are for a job that says nothing, which steps and sweeps are worth a trial,
// and which sets of values make a legal kernel. One static table per template;
// thread-safe.
//
// A schedule comes from outside. Whatever passes Check can be printed, and runs
// within the device's limits; the table's own defaults, moves and sweeps pass it.
class KnobTable {
 public:
  virtual ~KnobTable() = default;

  // In the order in which a move is named after them.
  virtual std::vector<Knob> rows() const = 0;
  // A complete set for a group that chooses nothing: naive, not best.
  virtual Knobs Defaults(const GroupView& view, const EmitTarget& target) const = 0;

  // Legal single steps from the group's present knobs, best bets first.
  // REQUIRES: the group's knobs are complete.
  std::vector<KnobMove> Moves(const GroupView& view, const EmitTarget& target) const;
  // Knobs worth sweeping, present value first; every combination is legal.
  // REQUIRES: the group's knobs are complete.
  std::vector<KnobSweep> Sweeps(const GroupView& view, const EmitTarget& target) const;

  // INVALID_ARGUMENT with what is allowed, unless every knob of the group is a row
  // with a value of its domain, every swept knob one that is printed as a
  // parameter, and every combination legal. Missing knobs have their defaults.
  absl::Status Check(const GroupView& view, const EmitTarget& target, const KnobValues& tune) const;

 protected:
  struct Proposal {
    std::string text;
    Knobs knobs;
  };

  // Steps that may be worth it, legal or not, the present set among them or not.
  virtual std::vector<Proposal> Propose(const GroupView& view, const EmitTarget& target) const = 0;
  // Values of a row that may be worth sweeping from the group's present knobs.
  virtual std::vector<int64_t> SweptValues(std::string_view knob, const GroupView& view,
                                           const EmitTarget& target) const = 0;
  // Whether the printer leaves this knob a parameter when it is swept.
  virtual bool IsParameter(std::string_view knob) const = 0;
  // The predicate over the whole set, whose values are in their domains. Made
  // once for many sets; the arguments outlive it.
  using Predicate = std::function<absl::Status(const Knobs& knobs)>;
  virtual Predicate MakePredicate(const GroupView& view, const EmitTarget& target) const = 0;
};

// The refusal of a value: `"bm" is 3, must be a power of two from 16 to 256`.
absl::Status BadKnob(std::string_view knob, int64_t value, std::string_view allowed);

// A table whose knobs are the members of a struct, which the printer reads.
template <typename T>
class TypedKnobTable final : public KnobTable {
 public:
  struct Row {
    Knob knob;
    int64_t T::*field;
    // Values that `tune` may try; null for a knob that shapes the text itself.
    std::vector<int64_t> (*swept)(const T& now, const EmitTarget& target) = nullptr;
  };

  struct Step {
    std::string text;
    T knobs;
  };

  struct Definition {
    std::vector<Row> rows;
    T (*defaults)(const GroupView& view, const EmitTarget& target);
    std::function<absl::Status(const T& knobs)> (*legality)(const GroupView& view,
                                                            const EmitTarget& target);
    std::vector<Step> (*steps)(const T& now, const GroupView& view, const EmitTarget& target);
  };

  explicit TypedKnobTable(Definition definition) : definition_(std::move(definition)) {}

  // REQUIRES: the group's knobs are complete.
  T Read(const GroupView& view) const { return Read(view.group->knobs); }

  Knobs Write(const T& values) const {
    Knobs knobs;
    for (const Row& row : definition_.rows) {
      knobs.emplace(row.knob.name, values.*row.field);
    }
    return knobs;
  }

  std::vector<Knob> rows() const override {
    std::vector<Knob> knobs;
    for (const Row& row : definition_.rows) knobs.push_back(row.knob);
    return knobs;
  }

  Knobs Defaults(const GroupView& view, const EmitTarget& target) const override {
    return Write(definition_.defaults(view, target));
  }

 protected:
  std::vector<Proposal> Propose(const GroupView& view, const EmitTarget& target) const override {
    std::vector<Proposal> proposals;
    for (const Step& step : definition_.steps(Read(view), view, target)) {
      proposals.push_back({step.text, Write(step.knobs)});
    }
    return proposals;
  }

  std::vector<int64_t> SweptValues(std::string_view knob, const GroupView& view,
                                   const EmitTarget& target) const override {
    const Row* row = FindRow(knob);
    if (row == nullptr || row->swept == nullptr) return {};
    return row->swept(Read(view), target);
  }

  bool IsParameter(std::string_view knob) const override {
    const Row* row = FindRow(knob);
    return row != nullptr && row->swept != nullptr;
  }

  Predicate MakePredicate(const GroupView& view, const EmitTarget& target) const override {
    return [this, is_legal = definition_.legality(view, target)](const Knobs& knobs) {
      return is_legal(Read(knobs));
    };
  }

 private:
  T Read(const Knobs& knobs) const {
    T values;
    for (const Row& row : definition_.rows) {
      values.*row.field = knobs.find(row.knob.name)->second;
    }
    return values;
  }

  const Row* FindRow(std::string_view knob) const {
    for (const Row& row : definition_.rows) {
      if (row.knob.name == knob) return &row;
    }
    return nullptr;
  }

  const Definition definition_;
};

}  // namespace mtmc::kernel
