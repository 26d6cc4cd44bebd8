#include "server/engine/passes.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "server/engine/device_lost.h"
#include "server/tracing/call_record.h"

namespace saccade::server {
namespace {

int64_t SizeOf(const Shares& shares) {
  int64_t size = 0;
  for (const auto& share : shares) size += share->size();
  return size;
}

void WriteDown(const Shares& shares, PassFacts pass) {
  std::vector<CallRecord*> records;
  for (const auto& share : shares) {
    if (share->record() != nullptr) records.push_back(share->record());
  }
  if (records.empty()) return;
  pass.requests = static_cast<int64_t>(shares.size());
  CallRecord::AddPass(records, pass);
}

// Computes `together` shares at a time, one pass after the other.
PassEnd ComputeApart(Shares shares, size_t together, Clock* clock, ModelMetrics* metrics,
                     const RunPass& run) {
  PassEnd end;
  for (size_t first = 0; first < shares.size(); first += together) {
    const auto begin = shares.begin() + static_cast<std::ptrdiff_t>(first);
    const auto count = static_cast<std::ptrdiff_t>(std::min(together, shares.size() - first));
    Shares part(std::make_move_iterator(begin), std::make_move_iterator(begin + count));
    const PassEnd its = ComputeShares(std::move(part), clock, metrics, run);
    if (its.no_room_for > 0)
      end.no_room_for = end.no_room_for == 0 ? its.no_room_for : std::min(end.no_room_for, its.no_room_for);
    end.device_lost = end.device_lost || its.device_lost;
  }
  return end;
}

}  // namespace

PassEnd ComputeShares(Shares shares, Clock* clock, ModelMetrics* metrics, const RunPass& run) {
  if (shares.empty()) return {};
  const int64_t size = SizeOf(shares);
  const absl::Time started = clock->Now();
  auto answers = run(shares);
  const absl::Time ended = clock->Now();
  WriteDown(shares, {.started = started, .ended = ended, .batch_size = size, .status = answers.status()});
  if (answers.ok()) {
    metrics->RecordBatch(size, ended - started);
    for (size_t i = 0; i < shares.size(); ++i) {
      shares[i]->Answer(std::move((*answers)[i]), {size, started, ended});
      shares[i].reset();
    }
    return {.whole = true};
  }
  const bool lost = IsDeviceLost(answers.status());
  const bool no_memory = absl::IsResourceExhausted(answers.status());
  if (shares.size() == 1 || lost) {
    for (auto& share : shares) share->FailComputed(answers.status());
    return {.no_room_for = no_memory ? size : 0, .device_lost = lost};
  }
  if (!no_memory) return ComputeApart(std::move(shares), 1, clock, metrics, run);
  const size_t half = (shares.size() + 1) / 2;
  PassEnd end = ComputeApart(std::move(shares), half, clock, metrics, run);
  if (end.no_room_for == 0) end.no_room_for = size;
  return end;
}

}  // namespace saccade::server
