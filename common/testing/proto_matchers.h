// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <string>

namespace google::protobuf {
class Message;
}

namespace mtmc::testing {

// Matches a protobuf message that equals one in text form; fields unset there
// must be unset. A text that does not parse matches nothing and says so.
class TextProtoMatcher : public Catch::MatcherBase<google::protobuf::Message> {
 public:
  explicit TextProtoMatcher(std::string text) : text_(std::move(text)) {}

  bool match(const google::protobuf::Message& message) const override;
  std::string describe() const override;

 private:
  std::string text_;
};

// CHECK_THAT(job, EqualsTextProto(R"pb(name: "projects/p/jobs/j")pb"));
inline TextProtoMatcher EqualsTextProto(std::string text) {
  return TextProtoMatcher(std::move(text));
}

}  // namespace mtmc::testing
