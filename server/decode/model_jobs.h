// The jobs of one model that wait for a decode thread: by priority, then clients take turns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

namespace saccade::server {

struct DecodeJob {
  absl::AnyInvocable<void() &&> run = nullptr;
  // Called in place of run if the job is removed for another one. Null: the job is never removed.
  absl::AnyInvocable<void(absl::Status) &&> reject = nullptr;
};

// The first job is that of the highest priority whose client has used the least of the threads' time.
// Between clients with the same use, and within a client, the earliest deadline goes first, then the
// job that came first. A client that had no jobs for a while begins at the level of the others with jobs of
// the same priority.
//
// Memory is bounded by the jobs that wait and run, kMaxIdleClients, and the number of priorities. Take() and
// Done() take a time that is logarithmic in the jobs and linear in the priorities, whatever clients there
// were before. Not thread-safe.
class ModelJobs {
 public:
  // Clients without jobs whose use is remembered, because it is above the level of the others.
  static constexpr size_t kMaxIdleClients = 256;

  // Where a job stands among its client's jobs.
  struct Position {
    int priority = 0;
    absl::Time deadline;
    // Unique, and increasing.
    int64_t pushed = 0;
    bool operator<(const Position& other) const {
      return std::tuple(-int64_t{priority}, deadline, pushed) <
             std::tuple(-int64_t{other.priority}, other.deadline, other.pushed);
    }
  };
  struct Key {
    std::string client;
    bool may_be_long = false;
    Position position;
  };
  struct Waiting {
    DecodeJob job;
    bool may_be_long = false;
    bool done_in_any_case = false;
    // For the owner of this list, which has one for each model.
    std::string model = {};
    // Set by Insert(), so that Take() copies nothing.
    std::string client = {};
  };
  struct Taken {
    std::string client;
    Waiting waiting;
  };

  ModelJobs() = default;
  ModelJobs(const ModelJobs&) = delete;
  ModelJobs& operator=(const ModelJobs&) = delete;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Whether there is no job but those that may be long.
  bool all_long() const { return turns_[kShort].empty(); }
  // Jobs that were taken and have not ended.
  int running() const { return running_; }
  // Clients that are known.
  size_t clients() const { return clients_.size(); }

  // Changes nothing if it throws.
  void Insert(const std::string& client, const Position& position, Waiting waiting);

  // Removes the job that goes first, and charges its client `seconds`. Passes over jobs that may be long if
  // `takes_long` is false. Does not throw. REQUIRES: there is such a job.
  Taken Take(bool takes_long, double seconds);
  // Says that a job of the client has ended, and took so many seconds more than was charged. Does not throw.
  void Done(const std::string& client, double seconds);

  // The job that makes room for others: of those with the lowest priority, the last one of the client that
  // has the most jobs. `added`, which may be null, is one that is to be inserted; returns nullopt if it is
  // that one, or if there is none. Takes a time that is linear in the clients.
  std::optional<Key> FindLast(const Key* added) const;
  // REQUIRES: there is such a job.
  const Waiting& At(const Key& key) const;
  Waiting Remove(const Key& key);

 private:
  enum Kind : size_t { kShort, kLong };
  static constexpr size_t kKinds = 2;
  static Kind KindOf(bool may_be_long) { return may_be_long ? kLong : kShort; }

  struct Client;
  // The first job of a client of one kind.
  struct Turn {
    double used = 0;
    Position first;
    bool operator<(const Turn& other) const {
      return std::tuple(-int64_t{first.priority}, used, first.deadline, first.pushed) <
             std::tuple(-int64_t{other.first.priority}, other.used, other.first.deadline, other.first.pushed);
    }
  };
  using Jobs = std::map<Position, Waiting>;
  using Turns = std::map<Turn, Client*>;
  using Idle = std::set<std::pair<double, Client*>>;
  struct Client {
    // The key in clients_.
    const std::string* name = nullptr;
    // Seconds of a thread.
    double used = 0;
    int running = 0;
    std::array<Jobs, kKinds> jobs;
    // Where it is listed in turns_, if it has jobs of that kind.
    std::array<Turns::iterator, kKinds> turns;
    // Its node of idle_ while it is not listed there, so that listing it allocates nothing.
    Idle::node_type idle;

    size_t size() const { return jobs[kShort].size() + jobs[kLong].size(); }
    bool is_idle() const { return size() == 0 && running == 0; }
    const Position& last() const;
  };

  Client& FindOrAdd(const std::string& name);
  // Puts the client where it belongs, after its first job of that kind or its use has changed.
  void List(Client& client, Kind kind);
  void Use(Client& client, double seconds);
  Waiting Erase(Client& client, Kind kind, Jobs::iterator job);
  // Lists a client that has become idle, and forgets those that are not ahead of the others.
  void Rest(Client& client);
  void ForgetIdle();

  std::map<std::string, Client> clients_;
  std::array<Turns, kKinds> turns_;
  // Clients that are idle, by their use.
  Idle idle_;
  // The use at which clients begin with jobs of a priority: the highest one of a client whose job of that
  // priority was taken, and at least level_. Each has its own, because clients of a low one may be far behind
  // those that are served before them.
  std::map<int, double> levels_;
  // The highest use of a client that was forgotten because there were too many.
  double level_ = 0;
  size_t size_ = 0;
  int running_ = 0;
};

}  // namespace saccade::server
