// Formatting of the command's JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/time/time.h"
#include "client/cpp/types.h"

namespace saccade::client {

// Formats with an indent of two spaces and a newline at the end. Bytes that are not UTF-8, as in some file
// names, are replaced.
std::string Dump(const nlohmann::ordered_json& document);

// Formats on one line, with a newline at the end.
std::string DumpLine(const nlohmann::ordered_json& document);

// Returns the number with the shortest decimal that is this float, e.g. 0.1 and not 0.10000000149011612.
double Shortest(float value);

// As `saccade models` and `saccade status` print it.
nlohmann::ordered_json ToJson(const Promotion& promotion);

// Rounded to microseconds.
double Milliseconds(absl::Duration duration);

}  // namespace saccade::client
