// SPDX-License-Identifier: Apache-2.0
#include "worker/bench/cold_bench.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/bench/synthetic_program.h"

namespace mtmc::worker {
namespace {

// Copies of code and data.
constexpr int kPlaces = 7;

Outcome<std::unique_ptr<Buffer>> Allocate(Device& device) {
  auto buffer = device.Allocate(kSyntheticElements * int64_t{sizeof(float)});
  if (!buffer.ok()) return buffer.failure();
  if (MaybeFailure failure = (*buffer)->Fill(0)) return *std::move(failure);
  return buffer;
}

// The first to fail ends the row of steps.
MaybeFailure InOrder(std::initializer_list<std::function<MaybeFailure()>> steps) {
  for (const auto& step : steps) {
    if (MaybeFailure failure = step()) return failure;
  }
  return std::nullopt;
}

ScalarArgument ToArgument(int32_t value) {
  ScalarArgument argument{.bytes = sizeof value};
  std::memcpy(argument.value.data(), &value, sizeof value);
  return argument;
}

}  // namespace

Outcome<std::unique_ptr<ColdBench>> ColdBench::Create(const std::vector<Device*>& devices,
                                                      std::string_view binary, int loops) {
  std::unique_ptr<ColdBench> bench(new ColdBench(devices, binary, loops));
  if (MaybeFailure failure = bench->Prepare()) return *std::move(failure);
  return bench;
}

MaybeFailure ColdBench::Prepare() {
  for (int i = 0; i < kPlaces; ++i) {
    auto place = MakePlace(device_);
    if (!place.ok()) return place.failure();
    places_.push_back(*std::move(place));
  }
  for (size_t i = 1; i < devices_.size(); ++i) {
    auto place = MakePlace(*devices_[i]);
    if (!place.ok()) return place.failure();
    elsewhere_.push_back(*std::move(place));
  }
  auto kept = Allocate(device_);
  if (!kept.ok()) return kept.failure();
  kept_ = *std::move(kept);
  return std::nullopt;
}

Outcome<ColdBench::Place> ColdBench::MakePlace(Device& device) {
  Place place;
  for (std::unique_ptr<Buffer>* buffer : {&place.x, &place.y}) {
    auto allocated = Allocate(device);
    if (!allocated.ok()) return allocated.failure();
    *buffer = *std::move(allocated);
  }
  auto module = device.Load(binary_);
  if (!module.ok()) return module.failure();
  place.module = *std::move(module);
  if (!place.module->Find(kSyntheticKernel)) {
    return Failure{.kind = Failure::Kind::kCheck,
                   .message = "the binary is not that of a synthetic program"};
  }
  return place;
}

LaunchCommand ColdBench::MakeLaunch(const Place& code, const Place& data) const {
  return {.kernel = code.module->Find(kSyntheticKernel),
          .grid = {kSyntheticElements / kSyntheticThreads, 1, 1},
          .block = {kSyntheticThreads, 1, 1},
          .arguments = {data.x.get(), data.y.get(), ToArgument(loops_)}};
}

MaybeFailure ColdBench::Flush() {
  auto sample = device_.Time([] { return MaybeFailure(); }, /*is_cold=*/true);
  return sample.ok() ? MaybeFailure() : MaybeFailure(sample.failure());
}

std::vector<ColdBench::Condition> ColdBench::MakeConditions() {
  const Place& first = places_.front();
  auto nothing = [] { return MaybeFailure(); };
  auto rewrite = [this, &first] { return first.x->CopyFrom(*kept_); };
  auto poison = [this, &first] {
    const BufferFill fills[] = {{.buffer = first.x.get(), .with_tensor = false},
                                {.buffer = first.y.get()}};
    return device_.Randomize(fills, DrawSeed());
  };
  auto scrub = [this] { return device_.Scrub(); };
  auto flush = [this] { return Flush(); };
  auto read = [this, &first]() -> MaybeFailure {
    BufferScan scan = ChecksumScan(first.x.get());
    return device_.Scan({&scan, 1});
  };
  const LaunchCommand launch = MakeLaunch(first, first);
  std::vector<Condition> conditions = {{"nothing", nothing, launch, &device_},
                                       {"x rewritten", rewrite, launch, &device_},
                                       {"x read", read, launch, &device_},
                                       {"y poisoned", poison, launch, &device_},
                                       {"chip scrubbed", scrub, launch, &device_},
                                       {"x rewritten, y poisoned, chip scrubbed",
                                        [=] {
                                          return InOrder({rewrite, poison, scrub});
                                        },
                                        launch, &device_},
                                       {"flushed", flush, launch, &device_},
                                       {"x rewritten, flushed",
                                        [=] {
                                          return InOrder({rewrite, flush});
                                        },
                                        launch, &device_},
                                       {"x rewritten, y poisoned, chip scrubbed, flushed",
                                        [=] {
                                          return InOrder({rewrite, poison, scrub, flush});
                                        },
                                        launch, &device_}};
  for (size_t i = 1; i < places_.size(); ++i) {
    conditions.push_back(
        {absl::StrCat("code at place ", i), nothing, MakeLaunch(places_[i], first), &device_});
    conditions.push_back(
        {absl::StrCat("data at place ", i), nothing, MakeLaunch(first, places_[i]), &device_});
  }
  for (size_t i = 0; i < elsewhere_.size(); ++i) {
    conditions.push_back({absl::StrCat("everything else ", i + 1), nothing,
                          MakeLaunch(elsewhere_[i], elsewhere_[i]), devices_[i + 1]});
  }
  return conditions;
}

Outcome<std::vector<ColdRow>> ColdBench::Run(int rounds) {
  const std::vector<Condition> conditions = MakeConditions();
  std::vector<ColdRow> rows;
  rows.reserve(conditions.size() + 1);
  for (const Condition& condition : conditions) rows.push_back({condition.name, {}});
  // What this process adds to every kernel; compare it with that of other runs.
  ColdRow yardstick{"the yardstick of this process", {}};
  // The first round loads code and is not counted.
  for (int round = 0; round <= rounds; ++round) {
    for (size_t i = 0; i < conditions.size(); ++i) {
      const Condition& condition = conditions[i];
      if (MaybeFailure failure = condition.prepare()) return *std::move(failure);
      Device& device = *condition.device;
      auto sample = device.Time([&] { return device.Enqueue(condition.launch); },
                                /*is_cold=*/true);
      if (!sample.ok()) return sample.failure();
      if (round > 0 && sample->is_clean()) rows[i].seconds.push_back(sample->seconds);
    }
    auto seconds = device_.TimeYardstick();
    if (!seconds.ok()) return seconds.failure();
    if (round > 0 && *seconds) yardstick.seconds.push_back(**seconds);
  }
  if (!yardstick.seconds.empty()) rows.push_back(std::move(yardstick));
  return rows;
}

}  // namespace mtmc::worker
