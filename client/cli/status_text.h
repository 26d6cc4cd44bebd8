// What is known of a daemon and its models at one moment, and how it is shown.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/console.h"
#include "client/client.h"

namespace saccade::client {

struct ModelStatus {
  Model model;
  Health health = Health::kUnknown;
  // Since it was loaded; none of a model that is not ready.
  std::optional<ModelStatistics> done = std::nullopt;
};

struct DaemonStatus {
  ServerMetadata server = {};
  bool live = false;
  bool ready = false;
  Health health = Health::kUnknown;
  std::vector<ModelStatus> models = {};
  // What the models have done is counted from then on, where it is not since they were loaded.
  std::optional<absl::Duration> interval = std::nullopt;
};

// `now` with what its models did since `before`, which was `interval` ago. One that was loaded anew in
// between begins at nothing.
DaemonStatus Since(const DaemonStatus& before, DaemonStatus now, absl::Duration interval);

// A document; or, without an end of lines in it, one of many.
std::string StatusJson(const std::string& url, const DaemonStatus& status, bool line);

void PrintStatus(Console& console, const std::string& url, const DaemonStatus& status);

}  // namespace saccade::client
