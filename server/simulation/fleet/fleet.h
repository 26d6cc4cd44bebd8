// A fleet on virtual time: clients that balance and repeat their calls, and replicas with the daemon's own
// admission and scheduler. Equal options and scripts give identical runs.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "server/simulation/fleet/balancer.h"
#include "server/simulation/fleet/options.h"
#include "server/simulation/fleet/replica.h"
#include "server/simulation/fleet/retry_budget.h"

namespace saccade::server::simulation {

// How an attempt ended, as its client sees it.
enum class Answer : uint8_t { kOk, kRejected, kLate, kUnavailable, kInternal };

// What happened to the calls that began in one second.
struct Second {
  int64_t calls = 0;
  int64_t in_time = 0;
  int64_t attempts = 0;
  // Passes that ended in this second, and the requests in them.
  int64_t passes = 0;
  int64_t computed = 0;
  // The replicas that were ready at its begin, and that counted for the bound.
  int ready = 0;
  // The most calls that the ready replicas can answer in time if all of them work as they should.
  double bound = 0;
};

// The attempts that a version's replicas have ended.
struct VersionTally {
  int64_t ended = 0;
  int64_t faults = 0;
  int64_t late = 0;
  // How many of those that replicas have accepted took how long. Each bucket's bound is kGrowth times the one
  // before, and the first one's is kFirst.
  static constexpr Nanos kFirst = kMillisecond;
  static constexpr double kGrowth = 1.05;
  std::array<int64_t, 320> took = {};

  void CountTime(Nanos time);
};

// Returns the 99th percentile of the times between two tallies of one version; zero without attempts.
Nanos SlowestHundredth(const VersionTally& before, const VersionTally& after);

class Fleet final : private SimTask::Watcher {
 public:
  explicit Fleet(const FleetOptions& options);
  ~Fleet() override;

  // Calls `what` at time `when`, unless the run ends before. May be called from within an action.
  void At(Nanos when, std::function<void(Nanos)> what);

  // Runs to the end. May be called once.
  void Run();

  // The functions below are for actions, and for use before Run().

  void SetRate(double rate) { rate_ = rate; }
  // Starts a replica; it is ready after `start_up`. Returns its number.
  int Start(const Build& build, Nanos start_up);
  // Ends a replica as Kubernetes does: it leaves the lists, accepts requests for the lame duck, and finishes
  // them.
  void Drain(int replica);
  // The daemon crashes: its connections are reset, and it leaves the lists at once.
  void Crash(int replica);
  // The node vanishes without notice. It leaves the list after options.unnoticed.
  void Vanish(int replica);

  // The numbers of the ready replicas.
  std::vector<int> Ready() const;
  // Those that will be ready, too.
  int Wanted() const;
  Replica& replica(int number) { return *replicas_[number]; }
  int replicas() const { return static_cast<int>(replicas_.size()); }
  VersionTally TallyOf(int version) const;

  const FleetOptions& options() const { return options_; }
  const std::vector<Second>& seconds() const { return seconds_; }
  // Calls that have ended, and those that did so more than once: always 0.
  int64_t ended() const { return ended_; }
  int64_t ended_twice() const { return ended_twice_; }

 private:
  enum class Kind : uint8_t {
    kArrival,
    kSend,
    kDeliver,
    kFinish,
    kWake,
    kResponse,
    kTimeout,
    kView,
    kTick,
    kAction
  };
  struct Event {
    Nanos at = {};
    // Breaks ties in the order of scheduling.
    uint64_t number = 0;
    // An attempt, or the number of an action.
    uint64_t subject = 0;
    // A replica, or for kView a client.
    int where = 0;
    int instance = 0;
    Kind kind = Kind::kAction;
    Answer answer = Answer::kOk;
    float load = 0;
    float weight = 0;
    // Seconds; negative for none.
    float hint = -1;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at != b.at ? a.at > b.at : a.number > b.number;
    }
  };
  struct Call {
    Nanos began = {};
    int client = 0;
    // Started so far. The last is at `replica` while it is open.
    int attempts = 0;
    int replica = 0;
    bool open = false;
    bool ended = false;
  };
  struct Client {
    Balancer balancer;
    RetryBudget budget;
    // A new list is on its way to it.
    bool told = false;
  };

  void Schedule(Event event);
  void Handle(const Event& event);
  void Arrive();
  // Calls that are past their deadline end.
  void Expire();
  Call* Find(uint64_t attempt);
  void Send(uint64_t call);
  void Deliver(const Event& event);
  void Respond(uint64_t attempt, int replica, Answer answer, std::optional<Nanos> hint);
  void Receive(const Event& event);
  void Retry(uint64_t call, Answer answer, std::optional<Nanos> hint);
  void FinishPass(const Event& event);
  void Ask(int replica);
  void Tick();
  void TellClients();
  // Ends the open attempt for its client's balancer; `load` is what the replica said, if it did.
  void Close(Call& call, std::optional<double> load);
  void End(Call& call, bool in_time);

  void OnRejected(SimTask& task, const absl::Status& why) override;
  void OnLost(const SimTask& task) override;

  const FleetOptions options_;
  VirtualClock clock_;
  Random random_;
  double rate_;
  Nanos now_ = {};
  uint64_t scheduled_ = 0;
  // A heap ordered by Later.
  std::vector<Event> events_;
  std::deque<std::function<void(Nanos)>> actions_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<Client> clients_;
  // Calls whose deadline has not passed, in the order of their arrival; the first has the number first_call_.
  std::deque<Call> calls_;
  uint64_t first_call_ = 0;
  std::vector<Second> seconds_;
  std::map<int, VersionTally> versions_;
  // The replica whose tasks are being destroyed, and whether their clients notice.
  int destroyed_ = 0;
  bool noticed_ = false;
  int64_t ended_ = 0;
  int64_t ended_twice_ = 0;
};

}  // namespace saccade::server::simulation
