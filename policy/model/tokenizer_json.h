// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "policy/model/tokenizer.h"

namespace mtmc::policy {

// Reads a `tokenizer.json` of the byte-pair kind:
//   normalizer      none, NFC, or a Sequence of NFC
//   pre_tokenizer   none, Split, Digits, ByteLevel, or a Sequence of them
//   model           BPE with merges as "a b" or ["a", "b"], ignore_merges,
//                   byte_fallback, unk_token
//   post_processor  none, ByteLevel, TemplateProcessing, or a Sequence of them
//   added_tokens
//
// INVALID_ARGUMENT when the text is damaged, UNIMPLEMENTED, with the name of the
// part, when the file asks for something that is not in this list.
absl::StatusOr<std::unique_ptr<Tokenizer>> ReadTokenizer(std::string_view json);

}  // namespace mtmc::policy
