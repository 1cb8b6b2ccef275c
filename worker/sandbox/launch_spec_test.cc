// SPDX-License-Identifier: Apache-2.0
#include "worker/sandbox/launch_spec.h"

#include <catch2/catch.hpp>
#include <string>

#include "worker/sandbox/host_trial.h"

namespace mtmc::worker {
namespace {

LaunchSpec Example() {
  LaunchSpec spec;
  spec.rights = {.party = PartyKind::kRunner,
                 .readable = {"/usr"},
                 .writable = {"/tmp/own"},
                 .devices = {"/dev/null"},
                 .scratch_bytes = 123,
                 .num_descriptors = 4,
                 .limits = {.open_files = 5, .processes = 6, .file_bytes = 7, .address_bytes = 8}};
  spec.mechanisms = {Mechanism::kSeccomp, Mechanism::kPidNamespace};
  spec.working_folder = "/tmp/own";
  return spec;
}

std::string Replaced(std::string from, std::string to) {
  std::string text = ToJson(Example());
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string Refusal(const std::string& text) {
  const auto spec = ParseLaunchSpec(text);
  CHECK(absl::IsInvalidArgument(spec.status()));
  return std::string(spec.status().message());
}

}  // namespace

TEST_CASE("a specification survives its text", "[launch_spec]") {
  const auto spec = ParseLaunchSpec(ToJson(Example()));
  REQUIRE(spec.ok());
  CHECK(ToJson(*spec) == ToJson(Example()));
  CHECK(spec->rights.limits.address_bytes == 8);
  CHECK(spec->mechanisms == Example().mechanisms);
}

TEST_CASE("a specification is refused for anything unknown or missing", "[launch_spec]") {
  CHECK(Refusal("") == "the specification is not JSON");
  CHECK(Refusal("[]") == "the specification must be an object");
  CHECK(Refusal(Replaced("\"party\"", "\"partie\"")) == "party must be a string");
  CHECK(Refusal(Replaced("\"runner\"", "\"daemon\"")) ==
        "party must be reference, builder or runner");
  CHECK(Refusal(Replaced("\"seccomp\"", "\"secomp\"")) ==
        "mechanisms must hold names of mechanisms");
  CHECK(Refusal(Replaced("\"party\"", "\"more\":1,\"party\"")) == "a field is unknown: more");
  CHECK(Refusal(Replaced("123", "-1")) == "scratch_bytes must be a whole number");
}

TEST_CASE("a path that could lead elsewhere is refused", "[launch_spec]") {
  for (const char* path : {"usr", "", "/usr/../etc", "/./usr", "/usr/", "//usr", "/usr\\u0000x"}) {
    INFO(path);
    CHECK(Refusal(Replaced("\"/usr\"", "\"" + std::string(path) + "\"")) ==
          "readable must hold clean absolute paths");
  }
}

TEST_CASE("the answer of a probe survives its text", "[launch_spec]") {
  HostSupport support{.landlock_version = 7};
  support.missing[Mechanism::kUserNamespace] = "write /proc/self/uid_map: \"no\"";
  const auto parsed = ParseHostSupport(ToJson(support));
  REQUIRE(parsed.ok());
  CHECK(parsed->missing == support.missing);
  CHECK(parsed->landlock_version == 7);
  CHECK(!ParseHostSupport("{}").ok());
  CHECK(!ParseHostSupport("{\"landlock_version\":1,\"missing\":{\"x\":\"y\"}}").ok());
}

}  // namespace mtmc::worker
