// Sends pictures from a few threads and hands the outcomes over in order.
#pragma once

#include <istream>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/cli/options.h"
#include "client/cli/outcome.h"
#include "client/cli/task.h"
#include "client/client.h"

namespace saccade::client {

class Batch {
 public:
  // Starts at once. All arguments must outlive the batch; `in` is what "-" reads.
  Batch(const PicturesCommand& command, const std::vector<Item>& items, const Task& task, Client& client,
        std::istream& in);

  // Items not yet begun are left; those under way are waited for.
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  size_t size() const { return items_.size(); }

  // Blocks until the item's outcome is there. Once an item.
  Outcome Take(size_t index);

 private:
  void Work();
  Outcome Ask(size_t index);

  const PicturesCommand& command_;
  const Task& task_;
  Client& client_;
  std::istream& in_;
  const std::vector<Item>& items_;
  // Of what is written; empty if nothing is.
  std::vector<std::string> stems_;
  absl::Mutex mutex_;
  std::vector<Outcome> outcomes_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> done_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_;
};

}  // namespace saccade::client
