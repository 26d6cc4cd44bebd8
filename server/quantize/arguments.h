// The command line of saccade-quantize.
#pragma once

#include <cstdint>
#include <string>

#include "models/layers/value_range.h"
#include "server/core/usable_cores.h"

namespace saccade::server {

struct QuantizeArguments {
  std::string model;     // the model's folder in its repository
  std::string pictures;  // a folder
  // The labels of the pictures: a list, or a folder; empty if there are none.
  std::string labels;
  // Maximum share of the answers that may change, or with labels of the task's figure that may be lost.
  double keep_within = 0.005;
  models::RangeMethod method = models::RangeMethod::kMse;
  int64_t version = 0;  // 0: the highest
  int max_pictures = 64;
  // With labels: of the items that are not calibrated with.
  int max_held_out = 500;
  int threads = 0;  // 0: all cores that may be used
};

// The threads that compute: `asked`, or the usable cores if that is 0.
int QuantizeThreads(int asked, const CoreLimits& limits);

// Ends the process with a message and exit code 2 if the arguments are wrong, and with 0 behind --help.
QuantizeArguments ParseQuantizeArguments(int argc, char** argv);

}  // namespace saccade::server
