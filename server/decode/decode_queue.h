// The order in which pictures are decoded: models by their shares, and clients within a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "server/decode/model_jobs.h"

namespace saccade::server {

// Not thread-safe. Models with jobs share the threads' time by their weights. A model that had none for a
// while begins at the level of the others: it is owed nothing. Within a model, see ModelJobs. Jobs that may
// take long are bounded in number, so that they do not keep all threads.
class DecodeQueue {
 public:
  struct Order {
    std::string model;
    // Share of the threads' time relative to other models' weights.
    double weight = 1;
    // As CallHead::client. Clients take turns within the model.
    std::string client = {};
    // Higher values go first, within the model.
    int priority = 0;
    absl::Time deadline = absl::InfiniteFuture();
    // If false and there is no room, this job is not kept, and none is removed for it.
    bool may_replace = true;
    // Whether the job may take seconds, as those of clips and volumes.
    bool may_be_long = false;
    // Whether the work is done elsewhere if there is no room for it here.
    bool done_in_any_case = false;
  };

  using Job = DecodeJob;

  struct Pushed {
    // Whether the job was taken.
    bool taken = true;
    // The job that is not kept because there is no room; the pushed one unless that was taken.
    std::optional<Job> removed = std::nullopt;
  };

  struct Taken {
    Job job;
    std::string model;
    std::string client;
    // What the model and the client were charged for the job.
    absl::Duration charged;
    bool may_be_long = false;
  };

  // `max_long_running` is the maximum number of jobs that may be long and run at the same time. REQUIRES:
  // both are positive.
  explicit DecodeQueue(int64_t max_jobs, int64_t max_long_running = std::numeric_limits<int64_t>::max())
      : max_jobs_(max_jobs), max_long_running_(max_long_running) {}

  // Adds a job. If there is no room, a job of the model that has the most jobs for its weight is not kept
  // (ModelJobs::FindLast()). That may be the pushed one.
  Pushed Push(const Order& order, Job job);

  // Number of jobs that may be taken now: without long ones while the maximum of these runs.
  int64_t due() const { return may_start_long() ? size_ : size_ - long_waiting_; }
  // Whether Pop() would return a job.
  bool has_due() const { return due() > 0; }

  // Removes the job that goes first. Passes over jobs that may be long while the maximum number of them runs.
  // Neither this nor Done() allocates, because the decode threads call them.
  std::optional<Taken> Pop();

  // Reports how long a job ran.
  void Done(const Taken& taken, absl::Duration took);

  int64_t size() const { return size_; }

  // Returns the threads' time since the last call that the jobs which ran took, and that those for which
  // there was no room would have taken, unless they are done in any case: as long as their model's jobs
  // usually do.
  absl::Duration TakeDemand() { return absl::Seconds(std::exchange(demand_, 0)); }

 private:
  // The model's use, and its name, which breaks ties.
  using Turn = std::pair<double, std::string>;
  struct Model {
    ModelJobs jobs;
    // Where it is listed in turns_, if it has jobs.
    std::set<Turn>::iterator turn;
    double weight = 1;
    // Seconds of a thread that were used, divided by the weight.
    double used = 0;
    // Running average of a job's seconds.
    double usual = 0;

    double crowding(int64_t more = 0) const { return static_cast<double>(jobs.size() + more) / weight; }
  };
  using Models = std::map<std::string, std::unique_ptr<Model>>;

  bool may_start_long() const { return long_running_ < max_long_running_; }
  // Lists the model if it had no jobs. Changes nothing if it throws.
  void Insert(const std::string& name, Model& model, const ModelJobs::Key& key, ModelJobs::Waiting waiting);
  // Counts a job that was removed from the model, and takes the model off the list if it was the last.
  void CountRemoved(const Model& model, const ModelJobs::Waiting& removed);
  Taken Take(Model& model);
  void Forget(Models::iterator model);
  void Use(Model& model, double seconds);
  void CountRejected(const Model& model, bool done_in_any_case);
  Pushed PushWithoutRoom(const std::string& name, Model& model, const ModelJobs::Key& key,
                         ModelJobs::Waiting waiting);

  const int64_t max_jobs_;
  const int64_t max_long_running_;
  Models models_;
  // Models with jobs.
  std::set<Turn> turns_;
  // Use of the model whose job was taken last.
  double served_ = 0;
  // Running average of the seconds of all models' jobs.
  double usual_ = 0;
  // See TakeDemand(), in seconds.
  double demand_ = 0;
  int64_t size_ = 0;
  // Jobs that may be long: those in the queue, and those that run.
  int64_t long_waiting_ = 0;
  int64_t long_running_ = 0;
  int64_t pushed_ = 0;
};

}  // namespace saccade::server
