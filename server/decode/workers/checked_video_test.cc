#include "server/decode/workers/checked_video.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <vector>

namespace saccade::server {
namespace {

constexpr DecodeLimits kLimits = {.max_pixels = 10'000, .max_bytes = 1 << 20};

WorkerVideo Opened() {
  return {.frames_per_second = 25, .claimed_frames = 3, .width = 40, .height = 30, .memory_bytes = 5000};
}

WorkerVideo Frame(int64_t decoded_pixels) {
  WorkerVideo frame = Opened();
  frame.decoded_pixels = decoded_pixels;
  frame.has_frame = true;
  return frame;
}

TEST(CheckedVideoTest, WhatAnHonestWorkerTellsIsTaken) {
  CheckedVideo video(1000, kLimits);
  ASSERT_TRUE(video.Take(Opened()).ok());
  EXPECT_EQ(video.decoded_pixels(), 0);
  // The decoder is some frames ahead, and the first frame has another size than the file's header gives.
  for (int frame = 0; frame < 3; ++frame) {
    WorkerVideo told = Frame(3 * 20 * 20);
    told.width = told.height = 20;
    ASSERT_TRUE(video.Take(told).ok());
    EXPECT_EQ(video.decoded_pixels(), 3 * 20 * 20);
    EXPECT_EQ(video.now().width, 20);
  }
}

TEST(CheckedVideoTest, FramesCountWhateverTheWorkerCounts) {
  CheckedVideo video(1000, kLimits);
  ASSERT_TRUE(video.Take(Opened()).ok());
  for (int frame = 1; frame <= 4; ++frame) {
    ASSERT_TRUE(video.Take(Frame(0)).ok());
    EXPECT_EQ(video.decoded_pixels(), frame * 40 * 30);
  }
}

TEST(CheckedVideoTest, AFileHasNoMoreFramesThanBytes) {
  CheckedVideo video(3, kLimits);
  ASSERT_TRUE(video.Take(Opened()).ok());
  for (int frame = 0; frame < 3; ++frame) ASSERT_TRUE(video.Take(Frame(0)).ok());
  EXPECT_EQ(video.Take(Frame(0)).code(), absl::StatusCode::kInternal);
}

TEST(CheckedVideoTest, WhatIsNotPossibleIsRefused) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  using Lie = std::function<void(WorkerVideo&)>;
  for (const Lie& lie : std::vector<Lie>{
           [](WorkerVideo& told) { told.frames_per_second = 0; },
           [](WorkerVideo& told) { told.frames_per_second = 1001; },
           [](WorkerVideo& told) { told.claimed_frames = -1; }, [](WorkerVideo& told) { told.width = 0; },
           [](WorkerVideo& told) { told.width = kMax; }, [](WorkerVideo& told) { told.height = 20; },
           [](WorkerVideo& told) { told.memory_bytes = -1; },
           [](WorkerVideo& told) { told.memory_bytes = kMax; },
           [](WorkerVideo& told) { told.decoded_pixels = 1199; },
           [](WorkerVideo& told) { std::memset(&told.has_frame, 2, 1); }}) {
    CheckedVideo video(1000, kLimits);
    ASSERT_TRUE(video.Take(Opened()).ok());
    ASSERT_TRUE(video.Take(Frame(1200)).ok());
    WorkerVideo told = Frame(2400);
    lie(told);
    EXPECT_EQ(video.Take(told).code(), absl::StatusCode::kInternal);
    EXPECT_EQ(video.decoded_pixels(), 1200);
    EXPECT_TRUE(video.Take(Frame(2400)).ok());
  }
}

}  // namespace
}  // namespace saccade::server
