// The status of a daemon and its models at one moment, and its output.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/output/console.h"
#include "client/cpp/client.h"

namespace saccade::client {

struct ModelStatus {
  Model model;
  Health health = Health::kUnknown;
  // Statistics since the model was loaded; not set for a model that is not ready.
  std::optional<ModelStatistics> done = std::nullopt;
};

struct DaemonStatus {
  ServerMetadata server = {};
  bool live = false;
  bool ready = false;
  Health health = Health::kUnknown;
  std::vector<ModelStatus> models = {};
  // Interval that the statistics of the models cover; not set if they count since the models were loaded.
  std::optional<absl::Duration> interval = std::nullopt;
};

// Returns `now` with the statistics of the models since `before`, which was `interval` ago. Statistics of a
// model that was reloaded in between start at zero.
DaemonStatus Since(const DaemonStatus& before, DaemonStatus now, absl::Duration interval);

// Formats one JSON document, on a single line if `line`.
std::string StatusJson(const std::string& url, const DaemonStatus& status, bool line);

void PrintStatus(Console& console, const std::string& url, const DaemonStatus& status);

}  // namespace saccade::client
