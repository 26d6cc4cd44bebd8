// Measures what the daemon adds to a bare gRPC call, side by side.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/load/load.h"

namespace saccade::client {

struct OverheadOptions {
  std::string url = "127.0.0.1:8001";
  std::string model;
  // Duration of each of the four measurements, without the warm-up.
  double duration_seconds = 5;
  std::vector<int> concurrency = {1, 16};
  // Number of times that the four measurements alternate, so that other activity on the machine affects all
  // of them alike.
  int rounds = 10;
};

// Results for one number of clients. The samples and the elapsed time of all rounds are added up.
struct Overhead {
  int clients = 0;
  LoadResult bare_predict;
  LoadResult daemon_predict;
  LoadResult bare_live;
  LoadResult daemon_live;
};

// Starts a bare server with these responses and returns its HOST:PORT. The server outlives the measurement.
using StartBare = std::function<absl::StatusOr<std::string>(const std::string& predict_answer,
                                                            const std::string& live_answer)>;

// Blocks for about 4 * duration at each concurrency, plus one warm-up round of each. Errors are the daemon's
// or those of start_bare.
absl::StatusOr<std::vector<Overhead>> MeasureOverhead(const OverheadOptions& options,
                                                      const StartBare& start_bare);

}  // namespace saccade::client
