// SPDX-License-Identifier: Apache-2.0
#include "common/testing/proto_matchers.h"

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>

#include <memory>

namespace mtmc::testing {

bool TextProtoMatcher::match(const google::protobuf::Message& message) const {
  const std::unique_ptr<google::protobuf::Message> expected(message.New());
  return google::protobuf::TextFormat::ParseFromString(text_, expected.get()) &&
         google::protobuf::util::MessageDifferencer::Equals(*expected, message);
}

std::string TextProtoMatcher::describe() const { return "equals { " + text_ + " }"; }

}  // namespace mtmc::testing
