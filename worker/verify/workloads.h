// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "mtmc/v1/evaluation.pb.h"

namespace mtmc::worker {

// What every program is verified on: the public workload (number 0) first, with
// `has_distributions` the distributions that most mistakes show on, and last the hidden seeds,
// on which timing goes on. Inputs that are mixed come twice. A distribution has the seed 100 + its
// number, so that evaluations of any number of hidden seeds share what is known of it.
std::vector<v1::Workload> MakeWorkloads(int hidden_seeds, bool has_distributions);

// What a program that may become the best is verified on as well: all other distributions, some
// of all with the model as its constructor made it, whose numbers begin at 200, many of mixed
// inputs, with `has_numbers` some around numbers of the program, and last hidden seeds again.
std::vector<v1::Workload> MakeWinnerWorkloads(bool has_numbers);

// Whether it is made for the program at hand, around a number of its text.
bool IsOwn(const v1::Workload& workload);

// Whether its inputs are as `get_inputs` draws them.
bool IsUnchanged(const v1::Workload& workload);

// Whether it is one of the hidden seeds, as `get_inputs` draws them. Only those are timed: what
// the file shows, a program may know.
bool IsHiddenSeed(const v1::Workload& workload);

// Such as `seed 3, times 3`.
std::string ToText(const v1::Workload& workload);

}  // namespace mtmc::worker
