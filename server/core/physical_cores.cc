#include "server/core/physical_cores.h"

#include <cstddef>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

std::optional<int> ReadTopologyNumber(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  int number = 0;
  if (!absl::SimpleAtoi(line, &number)) return std::nullopt;
  return number;
}

}  // namespace

std::vector<PhysicalCore> ReadPhysicalCores(const std::vector<int>& processors, const std::string& root) {
  std::vector<PhysicalCore> cores;
  // By package and number of the core in it: the index in `cores`.
  std::map<std::pair<int, int>, size_t> index_of;
  for (const int processor : processors) {
    const std::string folder = absl::StrCat(root, "/sys/devices/system/cpu/cpu", processor, "/topology/");
    const auto package = ReadTopologyNumber(folder + "physical_package_id");
    const auto number = ReadTopologyNumber(folder + "core_id");
    if (!package || !number) {
      cores.clear();
      for (const int each : processors) cores.push_back({each});
      return cores;
    }
    const auto [found, is_new] = index_of.try_emplace({*package, *number}, cores.size());
    if (is_new) cores.emplace_back();
    cores[found->second].push_back(processor);
  }
  return cores;
}

}  // namespace saccade::server
