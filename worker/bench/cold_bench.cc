// SPDX-License-Identifier: Apache-2.0
#include "worker/bench/cold_bench.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "worker/bench/synthetic_program.h"

namespace mtmc::worker {
namespace {

constexpr uint8_t kPoison = 0x7B;

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

Outcome<std::unique_ptr<ColdBench>> ColdBench::Create(Device& device, std::string_view binary,
                                                      int loops) {
  std::unique_ptr<ColdBench> bench(new ColdBench(device));
  if (MaybeFailure failure = bench->Allocate()) return *std::move(failure);
  auto module = device.Load(binary);
  if (!module.ok()) return module.failure();
  bench->module_ = *std::move(module);
  bench->launch_ = {.kernel = bench->module_->Find(kSyntheticKernel),
                    .grid = {kSyntheticElements / kSyntheticThreads, 1, 1},
                    .block = {kSyntheticThreads, 1, 1},
                    .arguments = {bench->x_.get(), bench->y_.get(), ToArgument(loops)}};
  if (!bench->launch_.kernel) {
    return Failure{.kind = Failure::Kind::kCheck,
                   .message = "the binary is not that of a synthetic program"};
  }
  return bench;
}

MaybeFailure ColdBench::Allocate() {
  for (std::unique_ptr<Buffer>* buffer : {&x_, &y_, &kept_}) {
    auto allocated = device_.Allocate(kSyntheticElements * int64_t{sizeof(float)});
    if (!allocated.ok()) return allocated.failure();
    *buffer = *std::move(allocated);
    if (MaybeFailure failure = (*buffer)->Fill(0)) return failure;
  }
  return std::nullopt;
}

MaybeFailure ColdBench::Flush() {
  auto sample = device_.Time([] { return MaybeFailure(); }, /*is_cold=*/true);
  return sample.ok() ? MaybeFailure() : MaybeFailure(sample.failure());
}

std::vector<ColdBench::Preparation> ColdBench::MakePreparations() {
  auto rewrite = [this] { return x_->CopyFrom(*kept_); };
  auto poison = [this] { return y_->Poison(kPoison); };
  auto scrub = [this] { return device_.Scrub(); };
  auto flush = [this] { return Flush(); };
  auto read = [this]() -> MaybeFailure {
    auto sum = x_->Checksum();
    return sum.ok() ? MaybeFailure() : MaybeFailure(sum.failure());
  };
  return {{"nothing", [] { return MaybeFailure(); }},
          {"x rewritten", rewrite},
          {"x read", read},
          {"y poisoned", poison},
          {"chip scrubbed", scrub},
          {"x rewritten, y poisoned, chip scrubbed",
           [=] {
             return InOrder({rewrite, poison, scrub});
           }},
          {"flushed", flush},
          {"x rewritten, flushed",
           [=] {
             return InOrder({rewrite, flush});
           }},
          {"x rewritten, y poisoned, chip scrubbed, flushed", [=] {
             return InOrder({rewrite, poison, scrub, flush});
           }}};
}

Outcome<std::vector<ColdRow>> ColdBench::Run(int rounds) {
  const std::vector<Preparation> preparations = MakePreparations();
  std::vector<ColdRow> rows;
  rows.reserve(preparations.size());
  for (const Preparation& preparation : preparations) rows.push_back({preparation.name, {}});
  const Body body = [this] { return device_.Enqueue(launch_); };
  // The first round loads code and is not counted.
  for (int round = 0; round <= rounds; ++round) {
    for (size_t i = 0; i < preparations.size(); ++i) {
      if (MaybeFailure failure = preparations[i].run()) return *std::move(failure);
      auto sample = device_.Time(body, /*is_cold=*/true);
      if (!sample.ok()) return sample.failure();
      if (round > 0 && !sample->is_throttled) rows[i].seconds.push_back(sample->seconds);
    }
  }
  return rows;
}

}  // namespace mtmc::worker
