// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <iostream>
#include <string>

#include "tests/fault/device_ward.h"

namespace mtmc::fault {
namespace {

using Ending = worker::Reply<pipe::v1::RunnerResponse>::Ending;

constexpr char kHang[] = "volatile __global float* v = y; while (v[0] != 12345.0f) v[0] = 1.0f;";
constexpr char kCrash[] = "y[i + (1L << 44)] = x[i];";
constexpr char kGood[] = "y[i] = x[i] + 1.0f;";

constexpr int kSamples = 5;

}  // namespace

TEST_CASE("A canary passes on a device that works", "[fault]") {
  auto ward = DeviceWard::Open({});
  if (!ward) return;
  pipe::v1::RunnerRequest canary;
  canary.mutable_canary();

  const auto reply = ward->runner().Call(canary, absl::Minutes(1));

  REQUIRE(reply.response.has_canary());
  CHECK(reply.response.canary().fault().empty());
}

TEST_CASE("A kernel that crashes costs the next program little", "[fault]") {
  auto ward = DeviceWard::Open({});
  if (!ward) return;

  const Recovery recovery = MeasureRecovery(*ward, {.body = kCrash}, kSamples);

  std::cout << ToJson("crash", *ward, recovery) << std::endl;
  CHECK(recovery.ms.size() == kSamples);
}

TEST_CASE("A kernel that hangs costs the next program little", "[fault]") {
  auto ward = DeviceWard::Open({});
  if (!ward) return;

  const Recovery recovery =
      MeasureRecovery(*ward, {.body = kHang, .deadline = absl::Milliseconds(200)}, kSamples);

  std::cout << ToJson("hang", *ward, recovery) << std::endl;
  CHECK(recovery.ms.size() == kSamples);
}

TEST_CASE("A write beside a buffer fails its program and not the process", "[fault]") {
  auto ward = DeviceWard::Open({});
  if (!ward) return;
  ward->Build("y[i] = x[i]; if (i == 0) y[256] = 1;");

  CHECK(ward->Run(absl::Minutes(1)).response.failure().kind() == v1::Failure::KIND_OUT_OF_BOUNDS);
  ward->Build(kGood);
  CHECK(ward->Run(absl::Minutes(1)).response.has_outputs());
}

TEST_CASE("A program that takes too much memory ends by name", "[fault]") {
  auto ward = DeviceWard::Open({.max_resident_bytes = int64_t{768} << 20});
  if (!ward) return;
  // 4 GiB on a device whose memory is the host's.
  ward->Build(kGood, "//@ buffer big f32[1073741824]\n");

  const auto reply = ward->Run(absl::Minutes(1));

  INFO(reply.detail << reply.response.ShortDebugString());
  const bool is_refused = reply.response.failure().kind() == v1::Failure::KIND_OUT_OF_MEMORY;
  CHECK((reply.ending == Ending::kOutOfMemory || is_refused));
  ward->Build(kGood);
  CHECK(ward->Run(absl::Minutes(1)).response.has_outputs());
}

}  // namespace mtmc::fault
