#include "server/simulation/ledger.h"

#include <numeric>

namespace saccade::server::simulation {
namespace {

Tally& At(std::vector<Tally>& tallies, size_t index) {
  if (index >= tallies.size()) tallies.resize(index + 1);
  return tallies[index];
}

}  // namespace

void Tally::Add(const Tally& other) {
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
}

int64_t Tally::total() const { return std::accumulate(counts_.begin(), counts_.end(), int64_t{0}); }

double Tally::Share(Outcome outcome) const {
  const int64_t stayed = total() - (*this)[Outcome::kCancelled];
  return stayed == 0 ? 0 : static_cast<double>((*this)[outcome]) / static_cast<double>(stayed);
}

void Ledger::Count(const Entry& entry, Outcome outcome, Nanos now) {
  if (entry.arrival < options_.from || entry.arrival >= options_.to) return;
  all_.Add(outcome);
  At(by_stream_, entry.stream).Add(outcome);
  At(by_bucket_, entry.bucket).Add(outcome);
  At(by_client_, entry.client).Add(outcome);
  if (options_.slot > Nanos())
    At(by_slot_, static_cast<size_t>((entry.arrival - options_.from) / options_.slot)).Add(outcome);
  if (outcome == Outcome::kInTime || outcome == Outcome::kLate) latency_.Add(now - entry.arrival);
}

double Ledger::goodput() const {
  return static_cast<double>(all_[Outcome::kInTime]) * 1e9 / (options_.to - options_.from).count();
}

double Ledger::fairness() const {
  double sum = 0;
  double squares = 0;
  for (const Tally& client : by_client_) {
    const auto in_time = static_cast<double>(client[Outcome::kInTime]);
    sum += in_time;
    squares += in_time * in_time;
  }
  return squares == 0 ? 0 : sum * sum / (static_cast<double>(by_client_.size()) * squares);
}

}  // namespace saccade::server::simulation
