// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace mtmc::kernel {

// What `forward` takes or returns: tensors and plain values, nested in Python's containers. A value
// type, made from `mtmc.v1.Structure` by `structure_proto.h`, which also checks it.
struct Structure {
  struct None {};

  // A user output of the graph.
  struct OutputName {
    std::string name;
  };

  // A graph input: a tensor argument, or among what is returned one that is handed back.
  struct InputName {
    std::string name;
  };

  struct Container {
    // A sequence is a class that takes one tuple.
    enum class Kind { kTuple, kList, kDictionary, kNamedTuple, kSequence, kDataclass };
    Kind kind = Kind::kTuple;
    // Where Python finds the class: no module stands for the user's file, no class for
    // Python's own tuple, list or dict.
    std::string module;
    std::string class_name;
    // Plain values; parallel to `items` of a dictionary or dataclass, else empty.
    std::vector<Structure> keys;
    std::vector<Structure> items;
  };

  std::variant<None, OutputName, InputName, bool, int64_t, double, std::string, Container> value;
};

}  // namespace mtmc::kernel
