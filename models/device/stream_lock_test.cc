#include "models/device/stream_lock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace saccade::models {
namespace {

void Await(const std::function<bool()>& met) {
  while (!met()) std::this_thread::yield();
}

TEST(StreamLockTest, PassesDoNotExcludeEachOther) {
  StreamLock lock;
  const StreamPass pass(lock);
  std::thread([&] { const StreamPass other(lock); }).join();
  EXPECT_EQ(lock.counts().passes, 1);
}

TEST(StreamLockTest, ARecordingWaitsForTheOtherPasses) {
  StreamLock lock;
  std::atomic<bool> inside = false;
  std::atomic<bool> recorded = false;
  std::thread other([&] {
    const StreamPass pass(lock);
    inside = true;
    Await([&] { return recorded || lock.counts().waiting_recordings == 1; });
    inside = false;
  });
  Await([&] { return inside.load(); });
  {
    const StreamPass pass(lock);
    const StreamRecording alone;
    EXPECT_FALSE(inside);
    recorded = true;
  }
  other.join();
  EXPECT_EQ(lock.counts().passes, 0);
}

TEST(StreamLockTest, PassesWaitForARecording) {
  StreamLock lock;
  std::atomic<bool> inside = false;
  std::thread other;
  {
    const StreamPass pass(lock);
    const StreamRecording alone;
    other = std::thread([&] {
      const StreamPass waiting(lock);
      inside = true;
    });
    Await([&] { return inside || lock.counts().waiting_passes == 1; });
    EXPECT_FALSE(inside);
  }
  other.join();
  EXPECT_TRUE(inside);
}

TEST(StreamLockTest, PassesThatAreBothToBeRecordedTakeTurns) {
  StreamLock lock;
  std::atomic<int> alone = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        const StreamPass pass(lock);
        const StreamRecording recording;
        EXPECT_EQ(++alone, 1);
        --alone;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(StreamLockTest, APassWithinAPassDoesNotWait) {
  StreamLock lock;
  std::thread recorder;
  {
    const StreamPass pass(lock);
    recorder = std::thread([&] {
      const StreamPass other(lock);
      const StreamRecording alone;
    });
    Await([&] { return lock.counts().waiting_recordings == 1; });
    const StreamPass inner(lock);
    EXPECT_EQ(lock.counts().passes, 1);
  }
  recorder.join();
  EXPECT_EQ(lock.counts().passes, 0);
}

TEST(StreamLockTest, WithoutAPassThereIsNothingToWaitFor) {
  StreamLock lock;
  const std::lock_guard emptied(GpuCacheMutex());
  const StreamRecording on_the_cpu;
  std::thread([&] { const StreamPass pass(lock); }).join();
}

// Whether another thread could empty the caches now.
bool CachesMayBeEmptied() {
  bool may = false;
  std::thread([&] { may = std::unique_lock(GpuCacheMutex(), std::try_to_lock).owns_lock(); }).join();
  return may;
}

TEST(StreamLockTest, NoCachesAreEmptiedWhileAStreamIsRecorded) {
  StreamLock lock;
  const StreamPass pass(lock);
  EXPECT_TRUE(CachesMayBeEmptied());
  {
    const StreamRecording alone;
    EXPECT_FALSE(CachesMayBeEmptied());
  }
  EXPECT_TRUE(CachesMayBeEmptied());
}

c10::Stream Numbered(int64_t id) { return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::kCUDA, 0), id); }

TEST(TakeStreamTest, ModelsShareAStreamOnlyIfThePoolIsUsedUp) {
  int64_t next = 0;
  const auto draw = [&] { return Numbered(100 + next++ % 32); };
  std::vector<LockedStream> taken;
  for (int i = 0; i < 32; ++i) taken.push_back(TakeStream(draw));
  const c10::Stream freed = taken[7].stream;
  // The pool wraps round to streams that are in use.
  taken.erase(taken.begin() + 7);
  const LockedStream again = TakeStream(draw);
  EXPECT_EQ(again.stream, freed);
  for (const LockedStream& other : taken) {
    EXPECT_NE(other.stream, again.stream);
    EXPECT_NE(other.lock, again.lock);
  }
  const LockedStream shared = TakeStream(draw);
  const auto same = [&](const LockedStream& other) { return other.stream == shared.stream; };
  const auto with = std::find_if(taken.begin(), taken.end(), same);
  EXPECT_EQ(with == taken.end() ? again.lock : with->lock, shared.lock);
  // The next one goes to another stream, which only one model has.
  EXPECT_NE(TakeStream(draw).stream, shared.stream);
}

}  // namespace
}  // namespace saccade::models
