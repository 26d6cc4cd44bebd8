#include "client/bench/overhead.h"

#include <array>

namespace saccade::client {
namespace {

// Small, so that the transport dominates the measurement.
constexpr int kPictureSide = 8;

struct Turn {
  ClosedLoop loop;
  Measurement* measurement;
};

absl::Status TakeTurns(std::array<Turn, 4>& turns, absl::Duration duration, int rounds) {
  Measurement warm_up;
  for (Turn& turn : turns) {
    const absl::Status status = turn.loop.Run(duration / rounds, warm_up);
    if (!status.ok()) return status;
  }
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < turns.size(); ++i) {
      // The order rotates, because the first and the last find the machine in different states.
      Turn& turn = turns[(i + round) % turns.size()];
      const absl::Status status = turn.loop.Run(duration / rounds, *turn.measurement);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Overhead>> MeasureOverhead(const OverheadOptions& options,
                                                      const StartBare& start_bare) {
  const std::string request = RawRequest(options.model, kPictureSide, kPictureSide);
  // The bare server sends the daemon's own responses, so that the sizes are the same.
  const auto predict_answer = CallOnce(options.url, Method::kPredict, request);
  if (!predict_answer.ok()) return predict_answer.status();
  const auto live_answer = CallOnce(options.url, Method::kServerLive, "");
  if (!live_answer.ok()) return live_answer.status();
  const auto bare = start_bare(*predict_answer, *live_answer);
  if (!bare.ok()) return bare.status();

  std::vector<Overhead> results;
  for (const int clients : options.concurrency) {
    Overhead result;
    result.clients = clients;
    std::array<Turn, 4> turns = {
        Turn{{*bare, Method::kPredict, request, clients}, &result.bare_predict},
        Turn{{options.url, Method::kPredict, request, clients}, &result.daemon_predict},
        Turn{{*bare, Method::kServerLive, "", clients}, &result.bare_live},
        Turn{{options.url, Method::kServerLive, "", clients}, &result.daemon_live}};
    const absl::Status status = TakeTurns(turns, absl::Seconds(options.duration_seconds), options.rounds);
    if (!status.ok()) return status;
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace saccade::client
