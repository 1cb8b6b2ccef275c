// SPDX-License-Identifier: Apache-2.0
#include "policy/model/tokenizer_json.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "policy/model/unicode.h"

namespace mtmc::policy {
namespace {

using Json = nlohmann::json;

// Vocabularies in use have under 300,000 tokens.
constexpr int64_t kLargestId = 1 << 24;
// Sequences in use have up to 8 steps and are not nested.
constexpr int kMaxDepth = 4;
constexpr size_t kMaxSteps = 64;

absl::Status Damaged(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("tokenizer.json: ", what));
}

absl::Status Unsupported(const std::string& what) {
  return absl::UnimplementedError(absl::StrCat("tokenizer.json: ", what, " is not supported"));
}

// The member, or null; also null when `object` is no object.
const Json& Member(const Json& object, const char* key) {
  static const Json& null = *new Json();
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

std::string TextOf(const Json& object, const char* key) {
  const Json& value = Member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

bool FlagOf(const Json& object, const char* key, bool fallback) {
  const Json& value = Member(object, key);
  return value.is_boolean() ? value.get<bool>() : fallback;
}

absl::StatusOr<int32_t> IdOf(const Json& value, const std::string& of) {
  if (!value.is_number_integer()) return Damaged(absl::StrCat("the id of ", of, " is no integer"));
  const auto id = value.get<int64_t>();
  if (id < 0 || id > kLargestId) {
    return Damaged(absl::StrCat("the id of ", of, " is ", id, ", must be 0 to ", kLargestId));
  }
  return static_cast<int32_t>(id);
}

absl::Status ReadNormalizer(const Json& json, int depth, Tokenizer::Options& options) {
  if (json.is_null()) return absl::OkStatus();
  const std::string type = TextOf(json, "type");
  if (type == "NFC") {
    options.normalizes_nfc = true;
    return absl::OkStatus();
  }
  if (type != "Sequence" || depth > kMaxDepth) {
    return Unsupported(absl::StrCat("normalizer '", type, "'"));
  }
  for (const Json& part : Member(json, "normalizers")) {
    MTMC_RETURN_IF_ERROR(ReadNormalizer(part, depth + 1, options));
  }
  return absl::OkStatus();
}

std::string EscapeForRegex(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    const bool is_plain = (static_cast<unsigned char>(c) & 0x80) != 0 || std::isalnum(c) != 0;
    if (!is_plain) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

absl::StatusOr<SplitStep::Behavior> BehaviorOf(const std::string& name) {
  if (name == "Isolated") return SplitStep::Behavior::kIsolated;
  if (name == "Removed") return SplitStep::Behavior::kRemoved;
  if (name == "MergedWithPrevious") return SplitStep::Behavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitStep::Behavior::kMergedWithNext;
  if (name == "Contiguous") return SplitStep::Behavior::kContiguous;
  return Damaged(absl::StrCat("'", name, "' is no split behavior"));
}

absl::StatusOr<SplitStep> MakeSplit(const std::string& pattern, SplitStep::Behavior behavior,
                                    bool inverts) {
  MTMC_ASSIGN_OR_RETURN(Regex regex, Regex::Create(pattern));
  return SplitStep{.pattern = std::move(regex), .behavior = behavior, .inverts = inverts};
}

absl::StatusOr<SplitStep> ReadSplit(const Json& json) {
  const Json& pattern = Member(json, "pattern");
  MTMC_ASSIGN_OR_RETURN(const SplitStep::Behavior behavior, BehaviorOf(TextOf(json, "behavior")));
  const bool inverts = FlagOf(json, "invert", false);
  if (Member(pattern, "Regex").is_string()) {
    return MakeSplit(TextOf(pattern, "Regex"), behavior, inverts);
  }
  if (Member(pattern, "String").is_string()) {
    return MakeSplit(EscapeForRegex(TextOf(pattern, "String")), behavior, inverts);
  }
  return Damaged("a Split pre-tokenizer has neither a Regex nor a String pattern");
}

absl::Status ReadPreTokenizer(const Json& json, int depth, std::vector<PreTokenizerStep>& steps) {
  if (json.is_null()) return absl::OkStatus();
  if (steps.size() > kMaxSteps) return Damaged("the pre-tokenizer has too many steps");
  const std::string type = TextOf(json, "type");
  if (type == "Sequence" && depth <= kMaxDepth) {
    for (const Json& part : Member(json, "pretokenizers")) {
      MTMC_RETURN_IF_ERROR(ReadPreTokenizer(part, depth + 1, steps));
    }
    return absl::OkStatus();
  }
  if (type == "Split") {
    MTMC_ASSIGN_OR_RETURN(SplitStep step, ReadSplit(json));
    steps.emplace_back(std::move(step));
    return absl::OkStatus();
  }
  if (type == "Digits") {
    const bool is_individual = FlagOf(json, "individual_digits", false);
    MTMC_ASSIGN_OR_RETURN(SplitStep step, MakeSplit(is_individual ? "\\p{N}" : "\\p{N}+",
                                                    SplitStep::Behavior::kIsolated, false));
    steps.emplace_back(std::move(step));
    return absl::OkStatus();
  }
  if (type == "ByteLevel") {
    // The prefix space comes before the pattern, the byte table after it.
    if (FlagOf(json, "add_prefix_space", true)) steps.emplace_back(PrefixSpaceStep{});
    if (FlagOf(json, "use_regex", true)) {
      MTMC_ASSIGN_OR_RETURN(SplitStep step,
                            MakeSplit(kGpt2Pattern, SplitStep::Behavior::kIsolated, false));
      steps.emplace_back(std::move(step));
    }
    steps.emplace_back(ByteLevelStep{});
    return absl::OkStatus();
  }
  return Unsupported(absl::StrCat("pre-tokenizer '", type, "'"));
}

absl::StatusOr<std::pair<std::string, std::string>> ReadMerge(const Json& json) {
  if (json.is_array() && json.size() == 2 && json[0].is_string() && json[1].is_string()) {
    return std::pair(json[0].get<std::string>(), json[1].get<std::string>());
  }
  if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    const size_t space = text.find(' ');
    if (space != text.npos && text.find(' ', space + 1) == text.npos) {
      return std::pair(text.substr(0, space), text.substr(space + 1));
    }
  }
  return Damaged("a merge is neither \"a b\" nor [\"a\", \"b\"]");
}

absl::StatusOr<Bpe> ReadModel(const Json& json) {
  const std::string type = TextOf(json, "type");
  // Files of the first versions have no type; a BPE has merges.
  if (type != "BPE" && !(type.empty() && Member(json, "merges").is_array())) {
    return Unsupported(absl::StrCat("model '", type, "'"));
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!TextOf(json, key).empty()) return Unsupported(absl::StrCat("'", key, "'"));
  }
  const Json& dropout = Member(json, "dropout");
  if (dropout.is_number() && dropout.get<double>() != 0) return Unsupported("'dropout'");
  const Json& vocabulary = Member(json, "vocab");
  if (!vocabulary.is_object()) return Damaged("the model has no vocabulary");
  Bpe::Options options;
  options.vocabulary.reserve(vocabulary.size());
  for (const auto& [token, id] : vocabulary.items()) {
    MTMC_ASSIGN_OR_RETURN(options.vocabulary[token], IdOf(id, absl::StrCat("'", token, "'")));
  }
  const Json& merges = Member(json, "merges");
  if (!merges.is_array()) return Damaged("the model has no merges");
  options.merges.reserve(merges.size());
  for (const Json& merge : merges) {
    MTMC_ASSIGN_OR_RETURN(auto pair, ReadMerge(merge));
    options.merges.push_back(std::move(pair));
  }
  options.ignores_merges = FlagOf(json, "ignore_merges", false);
  options.has_byte_fallback = FlagOf(json, "byte_fallback", false);
  options.fuses_unknown = FlagOf(json, "fuse_unk", false);
  if (Member(json, "unk_token").is_string()) options.unknown_token = TextOf(json, "unk_token");
  return Bpe::Create(std::move(options));
}

absl::StatusOr<std::vector<AddedToken>> ReadAddedTokens(const Json& json) {
  std::vector<AddedToken> tokens;
  for (const Json& entry : json) {
    AddedToken token;
    token.content = TextOf(entry, "content");
    if (!IsUtf8(token.content)) return Damaged("an added token is not valid UTF-8");
    MTMC_ASSIGN_OR_RETURN(token.id, IdOf(Member(entry, "id"), "an added token"));
    token.is_normalized = FlagOf(entry, "normalized", false);
    token.is_single_word = FlagOf(entry, "single_word", false);
    token.strips_left = FlagOf(entry, "lstrip", false);
    token.strips_right = FlagOf(entry, "rstrip", false);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

// The `single` template: special tokens before `$A` are the prefix, those
// after it the suffix.
absl::Status ReadTemplate(const Json& json, Tokenizer::Options& options) {
  bool is_after_text = false;
  for (const Json& part : Member(json, "single")) {
    if (Member(part, "Sequence").is_object()) {
      is_after_text = true;
      continue;
    }
    const std::string name = TextOf(Member(part, "SpecialToken"), "id");
    const Json& ids = Member(Member(Member(json, "special_tokens"), name.c_str()), "ids");
    if (!ids.is_array()) return Damaged(absl::StrCat("template token '", name, "' has no ids"));
    for (const Json& id : ids) {
      MTMC_ASSIGN_OR_RETURN(const int32_t value, IdOf(id, absl::StrCat("'", name, "'")));
      (is_after_text ? options.suffix : options.prefix).push_back(value);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadPostProcessor(const Json& json, int depth, Tokenizer::Options& options) {
  if (json.is_null()) return absl::OkStatus();
  const std::string type = TextOf(json, "type");
  // ByteLevel trims offsets and leaves the ids alone.
  if (type == "ByteLevel") return absl::OkStatus();
  if (type == "TemplateProcessing") return ReadTemplate(json, options);
  if (type != "Sequence" || depth > kMaxDepth) {
    return Unsupported(absl::StrCat("post-processor '", type, "'"));
  }
  for (const Json& part : Member(json, "processors")) {
    MTMC_RETURN_IF_ERROR(ReadPostProcessor(part, depth + 1, options));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> ReadTokenizer(std::string_view json) {
  const Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) return Damaged("not a JSON object");
  std::vector<PreTokenizerStep> steps;
  MTMC_RETURN_IF_ERROR(ReadPreTokenizer(Member(root, "pre_tokenizer"), 0, steps));
  MTMC_ASSIGN_OR_RETURN(Bpe bpe, ReadModel(Member(root, "model")));
  Tokenizer::Options options{.added_tokens = {},
                             .normalizes_nfc = false,
                             .pre_tokenizer = PreTokenizer(std::move(steps)),
                             .bpe = std::move(bpe),
                             .prefix = {},
                             .suffix = {}};
  MTMC_RETURN_IF_ERROR(ReadNormalizer(Member(root, "normalizer"), 0, options));
  MTMC_RETURN_IF_ERROR(ReadPostProcessor(Member(root, "post_processor"), 0, options));
  MTMC_ASSIGN_OR_RETURN(options.added_tokens, ReadAddedTokens(Member(root, "added_tokens")));
  return std::make_unique<Tokenizer>(std::move(options));
}

}  // namespace mtmc::policy
