#include "models/graphs/graph_ports.h"

#include <algorithm>
#include <string_view>

#include "models/api/error.h"
#include "models/api/text.h"
#include "models/programs/positions.h"

namespace saccade::models {
namespace {

Port AsPort(const GraphPort& seen) {
  Port port{.names = {}, .type = seen.type, .any_rank = seen.rank < 0};
  std::string_view names = seen.names;
  while (!names.empty()) {
    const size_t end = std::min(names.find('\n'), names.size());
    port.names.emplace_back(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
    const std::string& name = port.names.back();
    if (name.empty() || !IsUtf8(name))
      throw LoadError("an input or output of the graph is named " + Quote(name) +
                      ", expected a name of UTF-8 that is not empty; rename it in the graph");
  }
  if (port.names.empty())
    throw LoadError("an input or output of the graph has no name; give it one, and export the graph again");
  if (seen.rank > 0) port.dims.assign(seen.dims, seen.dims + seen.rank);
  return port;
}

// The name of each port under which the signature knows it, or else its first.
std::vector<std::string> KnownNames(const std::vector<Port>& ports,
                                    const std::vector<TensorSignature>& tensors) {
  std::vector<std::string> known;
  for (const Port& port : ports) {
    const auto is_of_port = [&](const TensorSignature& tensor) {
      return std::find(port.names.begin(), port.names.end(), tensor.name) != port.names.end();
    };
    const auto found = std::find_if(tensors.begin(), tensors.end(), is_of_port);
    known.push_back(found != tensors.end() ? found->name : port.names.front());
  }
  return known;
}

bool CanBe(const Port& port, const TensorSignature& tensor, bool batched) {
  if (port.type != static_cast<int32_t>(tensor.type)) return false;
  if (port.any_rank) return true;
  const size_t before = batched ? 1 : 0;
  if (port.dims.size() != before + tensor.dims.size()) return false;
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    const int64_t has = port.dims[before + i];
    if (has >= 0 && tensor.dims[i] >= 0 && has != tensor.dims[i]) return false;
  }
  return true;
}

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < 8; ++i) text += (i > 0 ? ", " : "") + Quote(names[i]);
  return names.size() > 8 ? text + ", ..." : text;
}

std::vector<size_t> Match(const std::vector<Port>& ports, const std::vector<TensorSignature>& tensors,
                          bool batched, bool checks_sizes, const char* what) {
  const std::vector<std::string> known = KnownNames(ports, tensors);
  std::vector<size_t> positions;
  try {
    positions = PositionsOf(tensors, known, ports.size(), what);
  } catch (const LoadError& error) {
    throw LoadError(std::string(error.what()) + "; the graph's " + what + "s are " + Listed(known));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Port& port = ports[positions[i]];
    const bool fits =
        checks_sizes ? CanBe(port, tensors[i], batched) : port.type == static_cast<int32_t>(tensors[i].type);
    if (fits) continue;
    throw LoadError(std::string(what) + " '" + tensors[i].name + "' of the graph is " + DescribePort(port) +
                    ", but the configuration says " + DescribeTensor(tensors[i], batched) + "; correct it");
  }
  return positions;
}

// A graph that was exported for one batch size has it in all its inputs.
bool TakesOneRow(const Ports& ports) {
  return std::all_of(ports.inputs.begin(), ports.inputs.end(),
                     [](const Port& port) { return !port.dims.empty() && port.dims.front() == 1; });
}

void CheckBatch(const Ports& ports, int64_t max_batch) {
  const std::string expected =
      max_batch == 1 ? "with max_batch_size 1 it has to be 1 or open" : "batches need it open";
  for (const Port& port : ports.inputs) {
    if (port.dims.empty() || port.dims.front() == -1) continue;
    if (max_batch == 1 && port.dims.front() == 1) continue;
    throw LoadError("input " + Quote(port.names.front()) + " of the graph is " + DescribePort(port) +
                    ", whose first size is fixed, but " + expected +
                    "; export the graph with a dynamic batch, or set max_batch_size to " +
                    (port.dims.front() == 1 ? "1" : "0 and give all dims"));
  }
}

}  // namespace

Ports ReadPorts(const GraphApi& api, const SaccadeGraph* graph) {
  Ports ports;
  for (int32_t i = 0; i < api.inputs(graph); ++i) ports.inputs.push_back(AsPort(api.input(graph, i)));
  for (int32_t i = 0; i < api.outputs(graph); ++i) ports.outputs.push_back(AsPort(api.output(graph, i)));
  return ports;
}

std::string DescribePort(const Port& port) {
  std::string text = port.type == kOtherType ? "of another type" : NameOf(static_cast<DataType>(port.type));
  if (port.any_rank) return text + " of any shape";
  text += " [";
  for (size_t i = 0; i < port.dims.size(); ++i) text += (i > 0 ? "," : "") + std::to_string(port.dims[i]);
  return text + "]";
}

MatchedPorts MatchPorts(const Ports& ports, const Signature& signature) {
  if (ports.inputs.size() != signature.inputs.size()) {
    std::vector<std::string> names;
    for (const Port& port : ports.inputs) names.push_back(port.names.front());
    throw LoadError("the graph has " + std::to_string(ports.inputs.size()) + " inputs (" + Listed(names) +
                    "), but the configuration says " + std::to_string(signature.inputs.size()));
  }
  for (const TensorSignature& input : signature.inputs) {
    if (input.optional)
      throw LoadError("input '" + input.name + "' is optional, but a graph needs all its inputs");
  }
  for (const auto* tensors : {&signature.inputs, &signature.outputs}) {
    for (const TensorSignature& tensor : *tensors) {
      if (tensor.type == DataType::kBytes)
        throw LoadError("'" + tensor.name + "' is BYTES, which graphs cannot have here; expected numbers");
    }
  }
  MatchedPorts matched;
  matched.inputs = Match(ports.inputs, signature.inputs, signature.batched, true, "input");
  // The head says which sizes it takes, and answers are checked against the configuration.
  matched.outputs = Match(ports.outputs, signature.outputs, signature.batched, false, "output");
  if (!signature.batched) return matched;
  matched.one_row = signature.max_batch != 1 && signature.may_split && TakesOneRow(ports);
  if (!matched.one_row) CheckBatch(ports, signature.max_batch);
  return matched;
}

}  // namespace saccade::models
