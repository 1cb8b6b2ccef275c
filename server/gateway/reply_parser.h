// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "server/gateway/micro_coder.h"

namespace mtmc::gateway {

// The program in a model's reply: the one fenced block whose text has an `mtmc`
// directive, or the whole reply when it begins with one. Of several such blocks
// the last one counts, because models correct themselves. Accepts any bytes.
//
// A CoderFailure otherwise: REPLY_EMPTY when there is nothing but blanks (a
// reasoning model that used up its tokens), REPLY_NOT_PARSED when there is no
// such block, it was cut off, or its directives do not parse. The message says
// which, for the next attempt's prompt.
CodingResult ParseReply(std::string_view reply, bool is_cut);

}  // namespace mtmc::gateway
