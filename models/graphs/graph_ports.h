// Matches a graph's inputs and outputs with the configuration's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/graphs/graph_api.h"
#include "models/programs/signature.h"

namespace saccade::models {

struct Port {
  // At least one.
  std::vector<std::string> names;
  // A DataType, or kOtherType.
  int32_t type = kOtherType;
  bool any_rank = false;
  // With the batch; -1 where open.
  std::vector<int64_t> dims = {};
};

struct Ports {
  std::vector<Port> inputs, outputs;
};

struct MatchedPorts {
  // For each tensor of the signature, the index of its port.
  std::vector<size_t> inputs, outputs;
  // Whether the graph takes a batch of one alone, but larger ones may come: Signature::may_split.
  bool one_row = false;
};

// Throws a LoadError if a name is empty or not UTF-8.
Ports ReadPorts(const GraphApi& api, const SaccadeGraph* graph);

// Returns "FP32 [-1,3,224,224]".
std::string DescribePort(const Port& port);

// Throws a LoadError if the signature lacks an input, if a type differs, or if a size can never fit; it names
// the tensor, what the graph has and what the configuration says.
MatchedPorts MatchPorts(const Ports& ports, const Signature& signature);

}  // namespace saccade::models
