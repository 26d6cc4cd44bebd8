// The text of an exception of OpenVINO's for a log or a response.
#pragma once

#include <string>
#include <string_view>

namespace saccade::models {

// Returns the lines in one, without those that name places in OpenVINO's sources ("Exception from ...",
// "Check '...' failed at ...") and without headings, which tell the user of the model nothing.
inline std::string ErrorLines(std::string_view text) {
  std::string kept;
  std::string all;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    while (!line.empty() && (line.back() == ' ' || line.back() == ':')) line.remove_suffix(1);
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    const size_t check = line.find(" Check '");
    if (check != std::string_view::npos && line.find("failed at src/") != std::string_view::npos)
      line = line.substr(0, check);
    if (line.empty()) continue;
    const auto add = [&](std::string& to) { to += (to.empty() ? "" : "; ") + std::string(line); };
    add(all);
    const bool is_source = line.starts_with("Exception from ") || line.starts_with("Check '");
    const bool is_heading = line == "Summary" || line.starts_with("FrontEnd API failed");
    if (!is_source && !is_heading) add(kept);
  }
  return kept.empty() ? all : kept;
}

}  // namespace saccade::models
