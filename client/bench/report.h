// Prints the overhead as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "client/bench/overhead.h"
#include "client/cli/output/console.h"

namespace saccade::client {

void PrintReport(Console& console, const std::vector<Overhead>& results);

std::string ReportJson(const OverheadOptions& options, const std::vector<Overhead>& results);

}  // namespace saccade::client
