#include "server/core/numa_nodes.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace saccade::server {
namespace {

// Above the largest number that Linux can be built for.
constexpr int kMaxProcessor = 1 << 16;
constexpr int kMaxNodes = 4096;

// Reads "0-3,8,10-11"; nullopt if it is something else.
std::optional<std::set<int>> ReadList(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  std::set<int> numbers;
  for (const absl::string_view part : absl::StrSplit(line, ',', absl::SkipEmpty())) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, '-');
    int first = 0;
    int last = 0;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last) ||
        first < 0 || last < first || last > kMaxProcessor)
      return std::nullopt;
    for (int number = first; number <= last; ++number) numbers.insert(number);
  }
  return numbers;
}

// By number, so that the order does not depend on the file system. nullopt if a node cannot be read.
std::optional<std::map<int, std::set<int>>> ReadNodes(const std::string& folder) {
  std::map<int, std::set<int>> nodes;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename();
    absl::string_view name = file;
    int number = 0;
    if (!absl::ConsumePrefix(&name, "node") || !absl::SimpleAtoi(name, &number)) continue;
    auto processors = ReadList(absl::StrCat(folder, "/", file, "/cpulist"));
    if (!processors || nodes.size() >= kMaxNodes) return std::nullopt;
    nodes[number] = *std::move(processors);
  }
  return nodes;
}

}  // namespace

std::vector<NumaNode> ReadNumaNodes(const std::vector<int>& processors, const std::string& root) {
  const std::vector<NumaNode> one = {processors};
  const auto found = ReadNodes(root + "/sys/devices/system/node");
  if (!found) return one;
  std::vector<NumaNode> nodes;
  size_t placed = 0;
  for (const auto& [number, of_node] : *found) {
    NumaNode node;
    for (const int processor : processors) {
      if (of_node.count(processor) > 0) node.push_back(processor);
    }
    placed += node.size();
    if (!node.empty()) nodes.push_back(std::move(node));
  }
  std::set<int> distinct;
  for (const NumaNode& node : nodes) distinct.insert(node.begin(), node.end());
  return placed == processors.size() && distinct.size() == placed && !nodes.empty() ? nodes : one;
}

}  // namespace saccade::server
