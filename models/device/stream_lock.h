// Keeps a GPU stream to one pass while that pass is recorded.
#pragma once

#include <c10/core/Stream.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

namespace saccade::models {

// Work that any thread enqueues on a stream under capture becomes part of the recording instead of being
// computed. So a recording excludes all passes on its stream; passes do not exclude each other. A waiting
// recording goes before passes that begin later. Thread-safe.
class StreamLock {
 public:
  struct Counts {
    int passes = 0;
    int waiting_passes = 0;
    int waiting_recordings = 0;
  };
  Counts counts() const;

 private:
  friend class StreamPass;
  friend class StreamRecording;

  void BeginPass();
  void EndPass();
  // Turn the calling thread's pass into a recording, and back.
  void BeginRecording();
  void EndRecording();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Counts counts_;           // guarded by mutex_
  bool recording_ = false;  // guarded by mutex_
};

// Marks the calling thread as one that uses the stream. Blocks while the stream is recorded, unless the
// thread uses it already.
class StreamPass {
 public:
  explicit StreamPass(StreamLock& lock);
  ~StreamPass();
  StreamPass(const StreamPass&) = delete;
  StreamPass& operator=(const StreamPass&) = delete;

 private:
  StreamLock* const outer_;
  // Null if the thread had begun a pass on this stream before.
  StreamLock* const lock_;
};

// While it lives, no other thread uses the stream of the calling thread's StreamPass, and no thread empties
// the GPUs' caches (GpuCacheMutex). Blocks until both hold; passes of other threads may run before it
// returns. Does nothing if the thread has no StreamPass, as on the CPU. The thread may hold no lock that
// passes need.
class StreamRecording {
 public:
  StreamRecording();
  ~StreamRecording();
  StreamRecording(const StreamRecording&) = delete;
  StreamRecording& operator=(const StreamRecording&) = delete;

 private:
  StreamLock* const lock_;
  std::unique_lock<std::mutex> cache_;
};

// Held while a stream is recorded, and while memory is given back to a GPU, which must not happen at once.
std::mutex& GpuCacheMutex();

// A stream, and the lock of all models that share it.
struct LockedStream {
  c10::Stream stream;
  std::shared_ptr<StreamLock> lock;
};

// Takes a stream that no other living LockedStream has, or, if all are in use, one that the fewest share.
// `draw` returns the streams of a GPU's pool in turn.
LockedStream TakeStream(const std::function<c10::Stream()>& draw);

}  // namespace saccade::models
