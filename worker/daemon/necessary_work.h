// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "mtmc/v1/problem.pb.h"

namespace mtmc::worker {

// What no correct program can leave undone, however clever: a lower bound that
// must hold for every honest one, so whatever is in doubt is not counted.
struct NecessaryWork {
  // Outputs, which are poisoned before each run, and the inputs of which every
  // element decides about an output.
  int64_t bytes = 0;
  // Of matrix products whose result is returned as it is or element by element.
  // Others can be avoided by algebra: a sum over a product is a product with a
  // sum, a chain of products has cheaper orders, convolutions have fast forms.
  int64_t flops = 0;
};

// Reads the graph backwards from its outputs. Slices, gathers, masks, windows
// with strides and every operator that is not known to read all of its operands
// need nothing. A problem that is known to be degenerate needs its outputs alone.
NecessaryWork FindNecessaryWork(const v1::Inspection& inspection);

}  // namespace mtmc::worker
