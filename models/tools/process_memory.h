// Reads how much memory this process uses, as Linux counts it.
#pragma once

#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>

namespace saccade::models {

// Returns a field of /proc/self/status in kB ("VmRSS", "VmHWM"), as bytes. Throws std::runtime_error if it is
// missing.
inline int64_t StatusBytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with(field + ":")) return std::stoll(line.substr(field.size() + 1)) * 1024;
  }
  throw std::runtime_error("/proc/self/status has no " + field);
}

}  // namespace saccade::models
