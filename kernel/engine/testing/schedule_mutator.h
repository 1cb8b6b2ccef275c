// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>
#include <string>

namespace mtmc::kernel {

// A few small changes of a schedule's text, such as a careless or hostile client
// makes: values beyond every limit, knobs of other templates, words and lines that
// are missing, twice there or out of order, sweeps that nobody offered. Most
// results still parse, some are legal.
std::string MutateSchedule(const std::string& text, std::mt19937& random);

}  // namespace mtmc::kernel
