// How the command's JSON is written.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/time/time.h"

namespace saccade::client {

// With two spaces of indent and a newline at the end. Bytes that are no UTF-8, as a file's name may have,
// are replaced rather than refused.
std::string Dump(const nlohmann::ordered_json& document);

// The same on one line.
std::string DumpLine(const nlohmann::ordered_json& document);

// The shortest decimal that is this float, e.g. 0.1 and not 0.10000000149011612.
double Shortest(float value);

// To the microsecond.
double Milliseconds(absl::Duration duration);

}  // namespace saccade::client
