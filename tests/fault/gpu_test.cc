// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstdlib>
#include <iostream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "tests/fault/device_ward.h"

namespace mtmc::fault {
namespace {

constexpr char kGood[] = "y[i] = x[i] + 1.0f;";
constexpr char kBadAddress[] = "y[i + (1L << 44)] = x[i];";
constexpr char kTrap[] = "y[i] = x[i]; if (i == 0) __trap();";
constexpr char kHang[] = "while (*(volatile float*)y != -77.0f) __nanosleep(1000);";

// Deaths of each kind; a spare with libtorch opens in some seconds.
int NumSamples() {
  const char* text = std::getenv("MTMC_FAULT_SAMPLES");
  int samples = 0;
  return text != nullptr && absl::SimpleAtoi(text, &samples) && samples > 0 ? samples : 20;
}

std::unique_ptr<DeviceWard> OpenGpu() {
  return DeviceWard::Open({.dialect = v1::DIALECT_CUDA, .has_library = true});
}

void CheckRecovery(const std::string& name, const BadProgram& bad) {
  auto ward = OpenGpu();
  if (!ward) return;

  const int samples = NumSamples();
  const Recovery recovery = MeasureRecovery(*ward, bad, samples);

  std::cout << ToJson(name, *ward, recovery) << std::endl;
  CHECK(recovery.ms.size() == static_cast<size_t>(samples));
}

// What `body` ends with; the next program must run.
worker::Reply<pipe::v1::RunnerResponse> RunThenGood(DeviceWard& ward, const std::string& body,
                                                    const std::string& directives = "") {
  ward.Build(body, directives);
  auto reply = ward.Run(absl::Seconds(20));
  std::cout << reply.response.ShortDebugString().substr(0, 400) << " "
            << reply.detail.substr(0, 400) << std::endl;
  ward.Build(kGood);
  const auto next = ward.Run(absl::Minutes(2));
  INFO(next.detail << next.response.ShortDebugString());
  CHECK(next.response.has_outputs());
  return reply;
}

}  // namespace

TEST_CASE("The canary passes on a GPU and is quick", "[gpu]") {
  auto ward = OpenGpu();
  if (!ward) return;
  pipe::v1::RunnerRequest canary;
  canary.mutable_canary();
  for (int i = 0; i < 3; ++i) {
    const absl::Time start = absl::Now();
    const auto reply = ward->runner().Call(canary, absl::Minutes(1));
    std::cout << "canary " << absl::ToDoubleMilliseconds(absl::Now() - start) << " ms "
              << reply.response.ShortDebugString() << std::endl;
    REQUIRE(reply.response.has_canary());
    CHECK(reply.response.canary().fault().empty());
  }
}

TEST_CASE("After a bad address the next program runs on the spare", "[gpu]") {
  CheckRecovery("bad_address", {.body = kBadAddress});
}

TEST_CASE("After a trap the next program runs on the spare", "[gpu]") {
  CheckRecovery("trap", {.body = kTrap});
}

TEST_CASE("After a kernel that never ends the next program runs on the spare", "[gpu]") {
  CheckRecovery("hang", {.body = kHang, .deadline = absl::Milliseconds(500)});
}

TEST_CASE("A write beside a GPU buffer fails its program and not the process", "[gpu]") {
  auto ward = OpenGpu();
  if (!ward) return;

  const auto reply = RunThenGood(*ward, "y[i] = x[i]; if (i == 0) y[256] = 1;");

  CHECK(reply.response.failure().kind() == v1::Failure::KIND_OUT_OF_BOUNDS);
  CHECK_FALSE(reply.response.is_context_lost());
}

TEST_CASE("More device memory than there is fails by name", "[gpu]") {
  auto ward = OpenGpu();
  if (!ward) return;

  // 400 GiB in pieces that the format allows.
  const std::string piece = " f32[26843545600]\n";
  const auto reply = RunThenGood(*ward, kGood,
                                 "//@ buffer a" + piece + "//@ buffer b" + piece + "//@ buffer c" +
                                     piece + "//@ buffer d" + piece);

  CHECK(reply.response.failure().kind() == v1::Failure::KIND_OUT_OF_MEMORY);
}

TEST_CASE("Memory of a killed program is not missed by the next", "[gpu]") {
  auto ward = OpenGpu();
  if (!ward) return;
  const std::string most = "//@ buffer big f32[24000000000]\n";
  for (int i = 0; i < 3; ++i) {
    REQUIRE(ward->AwaitSpare());
    ward->Build(kHang, most);
    CHECK_FALSE(ward->Run(absl::Seconds(5)).is_answered());
    ward->Build(kGood, most);
    const absl::Time start = absl::Now();
    const auto reply = ward->Run(absl::Minutes(1));
    std::cout << "90 GB again after " << absl::ToDoubleMilliseconds(absl::Now() - start) << " ms "
              << reply.detail << reply.response.failure().ShortDebugString() << std::endl;
    CHECK(reply.response.has_outputs());
  }
}

}  // namespace mtmc::fault
