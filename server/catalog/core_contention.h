// CPU time that other processes take on the daemon's cores, and the decision to repeat the thread trials when
// it has changed for long.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace saccade::server {

// Use of the daemon's cores between two measurements, as shares of them from 0 to 1.
struct CoreUse {
  // What other processes take: what they use beyond the processors that the daemon leaves free anyway.
  double by_others = 0;
  // What the daemon and the processes that it has started use.
  double own = 0;
};

// Reads what processes have used. Not thread-safe.
class CoreUseMeter {
 public:
  // The daemon may run on `processors` and keeps at most `cores` of them busy. Files are read below `root`.
  CoreUseMeter(std::vector<int> processors, int cores, std::string root = "");

  // The use since the last call; nullopt at the first one, and if the kernel does not tell. Takes about a
  // millisecond, and now and then 20 microseconds for each thread of the daemon.
  std::optional<CoreUse> Measure();

 private:
  // Clock ticks.
  struct Reading {
    double busy = 0;
    double total = 0;
    // Ticks of the daemon and its descendants, by process.
    std::map<int, double> own;
  };
  std::optional<Reading> Read();
  // False if there is no such process.
  bool AddProcess(const std::string& process, Reading* reading, int* id) const;
  // Adds the process and its descendants, down to so many generations. False if there is no such process.
  bool AddTree(const std::string& process, int generations, Reading* reading) const;
  std::vector<std::string> ChildrenOf(const std::string& process) const;

  const std::vector<int> processors_;
  const int cores_;
  const std::string root_;
  std::optional<Reading> last_;
  // The daemon's children, as last looked for.
  std::vector<std::string> children_;
  int reads_ = 0;
};

struct ContentionChangeOptions {
  // A change of the share that other processes use counts once it exceeds `begin`, until it falls below
  // `end`.
  double begin = 0.3;
  double end = 0.2;
  // How long it has to count.
  absl::Duration hold = absl::Minutes(5);
  // The least time between two trials.
  absl::Duration pause = absl::Minutes(30);
  // While the daemon itself uses more than this, its passes would disturb the trial, which waits.
  double max_own = 0.25;
};

// Decides when to try again. Not thread-safe.
class ContentionChange {
 public:
  // The earlier trials count as made while other processes used nothing.
  explicit ContentionChange(const ContentionChangeOptions& options = {}) : options_(options) {}

  // Adds what was used until `now`. Returns the mean share of other processes since it changed, if the
  // trials are to be repeated; they are then taken to be made with that share.
  std::optional<double> Add(absl::Time now, const CoreUse& use);

 private:
  const ContentionChangeOptions options_;
  // The share of other processes when the last trials were made.
  double tried_with_ = 0;
  absl::Time not_before_ = absl::InfinitePast();
  // Since when their share differs from that; InfiniteFuture while it does not.
  absl::Time since_ = absl::InfiniteFuture();
  double sum_ = 0;
  int count_ = 0;
};

}  // namespace saccade::server
