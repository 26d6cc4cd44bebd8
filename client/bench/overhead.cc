#include "client/bench/overhead.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <utility>

#include "client/load/unary_calls.h"

namespace saccade::client {
namespace {

// Small, so that the transport dominates the measurement.
constexpr int kPictureSide = 8;

// One of the four closed loops that take turns.
struct Turn {
  std::unique_ptr<UnaryCalls> calls;
  LoadResult* total;
};

// Runs one round and adds it to `total`. Returns the status of a failed call, if any.
absl::Status RunRound(UnaryCalls& calls, int clients, absl::Duration duration, LoadResult& total) {
  LoadResult round =
      RunLoad({.duration = duration, .connections = clients, .stop_after_failure = true}, calls.starter());
  const absl::Status failure = round.FirstFailure();
  total.elapsed += round.elapsed;
  std::move(round.samples.begin(), round.samples.end(), std::back_inserter(total.samples));
  return failure;
}

absl::Status TakeTurns(std::array<Turn, 4>& turns, int clients, absl::Duration duration, int rounds) {
  LoadResult warm_up;
  for (const Turn& turn : turns) {
    const absl::Status status = RunRound(*turn.calls, clients, duration / rounds, warm_up);
    if (!status.ok()) return status;
  }
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < turns.size(); ++i) {
      // The order rotates, because the first and the last find the machine in different states.
      const Turn& turn = turns[(i + round) % turns.size()];
      const absl::Status status = RunRound(*turn.calls, clients, duration / rounds, *turn.total);
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
    const auto calls = [&](const std::string& url, Method method) {
      return std::make_unique<UnaryCalls>(url, method, method == Method::kPredict ? request : "", clients);
    };
    std::array<Turn, 4> turns = {Turn{calls(*bare, Method::kPredict), &result.bare_predict},
                                 Turn{calls(options.url, Method::kPredict), &result.daemon_predict},
                                 Turn{calls(*bare, Method::kServerLive), &result.bare_live},
                                 Turn{calls(options.url, Method::kServerLive), &result.daemon_live}};
    const absl::Status status =
        TakeTurns(turns, clients, absl::Seconds(options.duration_seconds), options.rounds);
    if (!status.ok()) return status;
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace saccade::client
