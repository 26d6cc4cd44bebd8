// Sends items from several threads and returns the outcomes in order.
#pragma once

#include <istream>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cli/commands/options.h"
#include "client/cli/commands/task.h"
#include "client/cli/output/outcome.h"
#include "client/cpp/client.h"

namespace saccade::client {

class Batch {
 public:
  // Starts the threads. All arguments must outlive the batch; the input "-" is read from `in`.
  Batch(const PicturesCommand& command, const std::vector<Item>& items, const Task& task, Client& client,
        std::istream& in);

  // Waits for the requests in flight; drops the items not started, and repeats none.
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  size_t size() const { return items_.size(); }

  // Blocks until the item's outcome is available. Call once per item.
  Outcome Take(size_t index);

 private:
  void Work();
  Outcome Ask(size_t index);
  // Returns false, at once, if the batch is stopped.
  bool Sleep(absl::Duration delay);

  const PicturesCommand& command_;
  const Task& task_;
  Client& client_;
  std::istream& in_;
  const std::vector<Item>& items_;
  // Beginnings of the output files' names, one per item; empty without --output.
  std::vector<std::string> stems_;
  absl::Mutex mutex_;
  std::vector<Outcome> outcomes_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> done_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  // Set once; then no request is sent any more.
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace saccade::client
