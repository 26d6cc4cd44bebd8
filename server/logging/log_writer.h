// Writes log lines to a descriptor on a thread of its own, so that a reader that stalls delays no call.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace saccade::server {

// Lines that were not written, since the start.
struct LogLosses {
  // The reader did not keep up, and the queue was full.
  uint64_t queue_full = 0;
  // The descriptor did not take them: the disk is full, or the reader has gone.
  uint64_t write_failed = 0;
};

// Thread-safe.
class LogWriter {
 public:
  struct Options {
    // Not owned. It may be a file, a pipe, a terminal or a socket.
    int fd = 2;
    // Maximum bytes of lines that wait, the line that is being written included.
    size_t max_queued_bytes = size_t{1} << 20;
  };

  explicit LogWriter(const Options& options);
  // Drops what is not written yet; call Flush() before.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Queues `line`, which ends with a newline, or drops it if the queue is full. Does not wait for the reader.
  void Write(std::string line);

  // Waits for at most `max` until every line queued so far was written or has failed; true if so.
  bool Flush(absl::Duration max);

  LogLosses losses() const;

 private:
  void Run();
  // Writes the whole line, waiting for the reader; false if it could not.
  bool WriteLine(const std::string& line);
  bool WriteAll(absl::string_view text);
  // Waits until the descriptor takes bytes; false if the writer ends.
  bool AwaitRoom() const;

  const Options options_;
  // Readable once the writer ends, to interrupt a wait for the reader.
  const int end_fd_;
  // True if the last write ended within a line. Used by the thread only.
  bool within_line_ = false;
  mutable absl::Mutex mutex_;
  std::deque<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Lines that were accepted, and how many of them were written or have failed.
  uint64_t accepted_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t ended_ ABSL_GUARDED_BY(mutex_) = 0;
  LogLosses losses_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace saccade::server
