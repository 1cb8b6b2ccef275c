// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/templates/knob_table.h"
#include "kernel/templates/row/row_mapping.h"

namespace mtmc::kernel {

// The knobs of groups of reductions: `by_row`, `block`, `vector`, `depth`,
// `split` and `cache`, with the meanings of RowMapping. They are chosen, and
// checked, for the stage with the most elements; FitMapping fits them to others.
const TypedKnobTable<RowMapping>& RowKnobs();

}  // namespace mtmc::kernel
