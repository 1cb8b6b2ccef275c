// SPDX-License-Identifier: Apache-2.0
#include "worker/device/failure_proto.h"

#include <algorithm>

#include "worker/device/compiler.h"

namespace mtmc::worker {
namespace {

v1::Failure::Kind ToProto(Failure::Kind kind) {
  switch (kind) {
    case Failure::Kind::kParse:
      return v1::Failure::KIND_PARSE;
    case Failure::Kind::kCheck:
      return v1::Failure::KIND_CHECK;
    case Failure::Kind::kCompile:
      return v1::Failure::KIND_COMPILE;
    case Failure::Kind::kLaunch:
      return v1::Failure::KIND_LAUNCH;
    case Failure::Kind::kOutOfBounds:
      return v1::Failure::KIND_OUT_OF_BOUNDS;
    case Failure::Kind::kInputChanged:
      return v1::Failure::KIND_INPUT_CHANGED;
    case Failure::Kind::kOutOfMemory:
      return v1::Failure::KIND_OUT_OF_MEMORY;
    case Failure::Kind::kLibrary:
      return v1::Failure::KIND_LIBRARY;
  }
  return v1::Failure::KIND_UNSPECIFIED;
}

}  // namespace

std::string ToLog(const std::string& text) {
  std::string log = text.substr(0, kMaxLogBytes);
  std::replace_if(
      log.begin(), log.end(), [](char c) { return (static_cast<unsigned char>(c) & 0x80U) != 0; },
      '?');
  return log;
}

v1::Failure ToProto(const Failure& failure, v1::Stage stage) {
  v1::Failure proto;
  proto.set_kind(ToProto(failure.kind));
  proto.set_stage(stage);
  proto.set_message(ToLog(failure.message));
  proto.set_diagnostics(ToLog(failure.diagnostics));
  return proto;
}

}  // namespace mtmc::worker
