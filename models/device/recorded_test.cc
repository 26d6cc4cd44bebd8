#include "models/device/recorded.h"

#include <ATen/ops/arange.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "models/device/out_of_memory.h"
#include "models/device/stream_lock.h"
#include "models/testing/fake_host_allocator.h"

namespace saccade::models {
namespace {

constexpr Target kReplayed{.precision = Precision::kTf32, .replay_on_cpu = true};

// What graphs did, together.
struct Log {
  int made = 0;
  int recorded = 0;
  int replayed = 0;
  int alive = 0;
  // Recordings beside which one was made; null for a new memory pool.
  std::vector<kernels::CudaGraph*> beside;
  // Called by Record().
  std::function<void()> on_record = [] {};
  // Bytes that each recording adds to the pool, and those of the GPU; 0 as on the CPU.
  int64_t bytes_of_recording = 0;
  int64_t gpu_bytes = 0;
};

class FakeGraph : public kernels::CudaGraph {
 public:
  explicit FakeGraph(Log* log) : log_(log) { ++log_->alive; }
  ~FakeGraph() override { --log_->alive; }

  void Record(const std::function<void()>& work) override {
    ++log_->recorded;
    log_->on_record();
    work_ = work;
    work_();
  }
  void Replay() override {
    ++log_->replayed;
    work_();
  }
  kernels::GraphMemory memory() const override {
    return {log_->alive * log_->bytes_of_recording, log_->gpu_bytes};
  }

 private:
  Log* const log_;
  std::function<void()> work_;
};

Recorded::MakeGraph GraphsOf(Log* log) {
  return [log](kernels::CudaGraph* beside) {
    ++log->made;
    log->beside.push_back(beside);
    return std::make_unique<FakeGraph>(log);
  };
}

// Doubles the pictures.
std::vector<FeatureMap> Twice(const FeatureMap& pictures) {
  return {{pictures.values.mul(2), pictures.extents}};
}

// `count` pictures of one row; the numbers are different ones.
at::Tensor Pictures(int64_t count, int64_t width = 4) {
  return at::arange(count * 3 * width, at::kFloat).reshape({count, 3, 1, width});
}

Extents ExtentsOf(const at::Tensor& pictures) {
  std::vector<Size> sizes;
  for (int64_t i = 0; i < pictures.size(0); ++i) sizes.push_back({1, 1 + i % pictures.size(3)});
  return Extents(std::move(sizes));
}

// Runs the pictures and expects them to be doubled, and their extents to be their own.
void ExpectTwice(const Recorded& network, const at::Tensor& pictures) {
  const std::vector<FeatureMap> maps = network(pictures, ExtentsOf(pictures));
  ASSERT_EQ(maps.size(), 1u);
  EXPECT_TRUE(maps[0].values.equal(pictures.mul(2)));
  EXPECT_EQ(maps[0].extents.sizes(), ExtentsOf(pictures).sizes());
}

TEST(RecordedTest, BatchesAreRoundedUpByLessThanAQuarter) {
  for (int64_t count = 0; count <= 8; ++count) EXPECT_EQ(RecordedBatch(count), count);
  EXPECT_EQ(RecordedBatch(9), 10);
  EXPECT_EQ(RecordedBatch(16), 16);
  EXPECT_EQ(RecordedBatch(17), 20);
  EXPECT_EQ(RecordedBatch(33), 40);
  std::set<int64_t> recorded;
  for (int64_t count = 1; count <= 128; ++count) {
    EXPECT_GE(RecordedBatch(count), count);
    EXPECT_LT(4 * RecordedBatch(count), 5 * count) << count;
    recorded.insert(RecordedBatch(count));
  }
  EXPECT_EQ(recorded.size(), 8u + 4u * 4u);
}

TEST(RecordedTest, ARoundedBatchAnswersForItsOwnItemsAlone) {
  Log log;
  std::vector<int64_t> batches;
  const Recorded network(
      kReplayed, /*record=*/true,
      [&](const FeatureMap& pictures) {
        batches.push_back(pictures.values.size(0));
        // What fills the batch is a picture like the others, not memory that nobody wrote.
        EXPECT_EQ(pictures.extents.AsValid().size(0), pictures.values.size(0));
        return Twice(pictures);
      },
      GraphsOf(&log));
  ExpectTwice(network, Pictures(10));
  ExpectTwice(network, Pictures(9));
  ExpectTwice(network, Pictures(9).add(0.5));
  EXPECT_EQ(log.recorded, 1);
  EXPECT_THAT(batches, ::testing::Each(10));
}

TEST(RecordedTest, TheLastItemFillsARoundedBatch) {
  Log log;
  at::Tensor seen;
  const Recorded network(
      kReplayed, /*record=*/true,
      [&](const FeatureMap& pictures) {
        seen = pictures.values.clone();
        return Twice(pictures);
      },
      GraphsOf(&log));
  const at::Tensor pictures = Pictures(9);
  ExpectTwice(network, pictures);
  ASSERT_EQ(seen.size(0), 10);
  EXPECT_TRUE(seen[9].equal(pictures[8]));
}

TEST(RecordedTest, RecordingsShareOneMemoryPoolAndOneInput) {
  Log log;
  std::vector<const void*> inputs;
  const Recorded network(
      kReplayed, /*record=*/true,
      [&](const FeatureMap& pictures) {
        inputs.push_back(pictures.values.const_data_ptr());
        return Twice(pictures);
      },
      GraphsOf(&log));
  for (const int64_t count : {8, 1, 2, 4}) ExpectTwice(network, Pictures(count));
  ASSERT_EQ(log.beside.size(), 4u);
  EXPECT_EQ(log.beside[0], nullptr);
  for (size_t i = 1; i < 4; ++i) EXPECT_NE(log.beside[i], nullptr);
  EXPECT_THAT(inputs, ::testing::Each(inputs[0]));
  // A larger input takes the place of the smaller one, whose recordings keep theirs.
  ExpectTwice(network, Pictures(16));
  ExpectTwice(network, Pictures(8));
  EXPECT_NE(log.beside[4], nullptr);
  EXPECT_EQ(inputs.back(), inputs[0]);
  EXPECT_EQ(log.recorded, 5);
}

TEST(RecordedTest, AShapeThatComesOftenReplacesTheOneThatWasNotUsed) {
  Log log;
  const Recorded network(kReplayed, /*record=*/true, Twice, GraphsOf(&log));
  constexpr auto kMax = static_cast<int64_t>(Recorded::kMaxRecordings);
  for (int64_t width = 1; width <= kMax; ++width) ExpectTwice(network, Pictures(1, width));
  ExpectTwice(network, Pictures(1, 1));  // now 2 is the width that was used least recently
  EXPECT_EQ(log.recorded, kMax);
  for (int i = 1; i < Recorded::kPassesToReplace; ++i) ExpectTwice(network, Pictures(1, kMax + 1));
  EXPECT_EQ(log.recorded, kMax);
  ExpectTwice(network, Pictures(1, kMax + 1));
  EXPECT_EQ(log.recorded, kMax + 1);
  EXPECT_EQ(log.alive, kMax);
  // The others are replayed as before; of width 2 there is no recording.
  const int replayed = log.replayed;
  ExpectTwice(network, Pictures(1, 1));
  ExpectTwice(network, Pictures(1, 3));
  ExpectTwice(network, Pictures(1, kMax + 1));
  EXPECT_EQ(log.replayed, replayed + 3);
  ExpectTwice(network, Pictures(1, 2));
  EXPECT_EQ(log.replayed, replayed + 3);
  EXPECT_EQ(log.recorded, kMax + 1);
}

TEST(RecordedTest, MoreShapesInTurnThanThereIsRoomForAreNotRecordedEachTime) {
  Log log;
  const Recorded network(kReplayed, /*record=*/true, Twice, GraphsOf(&log));
  constexpr auto kMax = static_cast<int64_t>(Recorded::kMaxRecordings);
  for (int round = 0; round < 2 * Recorded::kPassesToReplace; ++round) {
    for (int64_t width = 1; width <= kMax + 4; ++width) ExpectTwice(network, Pictures(1, width));
  }
  EXPECT_EQ(log.recorded, kMax);
}

TEST(RecordedTest, SizesGoThroughPageLockedMemoryInEachReplay) {
  testing::FakeHostAllocator page_locked;
  Log log;
  at::Tensor valid;
  const Recorded network(
      kReplayed, /*record=*/true,
      [&](const FeatureMap& pictures) {
        valid = pictures.extents.AsValid().clone();
        return Twice(pictures);
      },
      GraphsOf(&log));
  ExpectTwice(network, Pictures(2));
  EXPECT_EQ(page_locked.allocated, 1);
  network(Pictures(2), Extents({{1, 3}, {1, 4}}));
  EXPECT_EQ(page_locked.allocated, 2);
  EXPECT_TRUE(valid.equal(Extents({{1, 3}, {1, 4}}).AsValid()));
}

TEST(RecordedTest, PicturesAreCastIntoTheChannelsLastInput) {
  Log log;
  at::Tensor seen;
  const Recorded network(
      {.precision = Precision::kBFloat16, .replay_on_cpu = true}, /*record=*/true,
      [&](const FeatureMap& pictures) {
        seen = pictures.values;
        return Twice(pictures);
      },
      GraphsOf(&log));
  const at::Tensor pictures = Pictures(2).add(0.001);
  network(pictures, ExtentsOf(pictures));
  EXPECT_EQ(seen.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(seen.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(seen.equal(pictures.to(at::kBFloat16)));
}

TEST(RecordedTest, FetchedResultsAreFloatsOfTheirOwnPass) {
  for (const bool record : {true, false}) {
    Log log;
    const Recorded network({.precision = Precision::kBFloat16, .replay_on_cpu = true}, record, Twice,
                           GraphsOf(&log));
    const at::Tensor pictures = Pictures(9);
    const Recorded::Answer first = network.Fetch(pictures, ExtentsOf(pictures));
    network.Fetch(pictures.add(1), ExtentsOf(pictures));  // would overwrite the graph's output
    ASSERT_EQ(first.maps.size(), 1u);
    EXPECT_EQ(first.maps[0].values.scalar_type(), at::kFloat);
    EXPECT_TRUE(first.maps[0].values.equal(pictures.to(at::kBFloat16).mul(2).to(at::kFloat)));
    EXPECT_EQ(first.maps[0].extents.sizes(), ExtentsOf(pictures).sizes());
    EXPECT_THAT(first.finite_pixels, ::testing::ElementsAreArray(std::vector<bool>(9, true)));
    EXPECT_EQ(log.replayed, record ? 2 : 0);
  }
}

TEST(RecordedTest, FetchedResultsSayWhichPixelsAreNotFinite) {
  Log log;
  const Recorded network(kReplayed, /*record=*/true, Twice, GraphsOf(&log));
  const at::Tensor pictures = Pictures(3);
  pictures[1][2][0][3].fill_(std::numeric_limits<float>::infinity());
  EXPECT_THAT(network.Fetch(pictures, ExtentsOf(pictures)).finite_pixels,
              ::testing::ElementsAre(true, false, true));
}

TEST(RecordedTest, FetchingIsTriedAgainWithoutRecordings) {
  Log log;
  const Recorded network(kReplayed, /*record=*/true, Twice, GraphsOf(&log));
  ExpectTwice(network, Pictures(1));
  log.on_record = [] { TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory."); };
  const Recorded::Answer answer = network.Fetch(Pictures(2), ExtentsOf(Pictures(2)));
  EXPECT_TRUE(answer.maps.at(0).values.equal(Pictures(2).mul(2)));
  EXPECT_EQ(log.alive, 0);
}

void RunOutOfMemory() { TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory."); }

TEST(RecordedTest, AShapeThatCannotBeRecordedForLackOfMemoryIsComputedDirectly) {
  Log log;
  const Recorded network(kReplayed, /*record=*/true, Twice, GraphsOf(&log));
  ExpectTwice(network, Pictures(1));
  ExpectTwice(network, Pictures(2));
  EXPECT_EQ(log.alive, 2);
  log.on_record = RunOutOfMemory;
  ExpectTwice(network, Pictures(8));
  // The memory of the others is free for the pass.
  EXPECT_EQ(log.alive, 0);
  EXPECT_EQ(log.recorded, 3);
  log.on_record = [] {};
  // It is not tried again in each pass, and others are recorded, in a pool of their own.
  ExpectTwice(network, Pictures(8));
  EXPECT_EQ(log.recorded, 3);
  ExpectTwice(network, Pictures(1));
  EXPECT_EQ(log.recorded, 4);
  EXPECT_EQ(log.beside.back(), nullptr);
}

// Passes over the pictures, without a look at the results.
void RunPasses(const Recorded& network, const at::Tensor& pictures, int64_t passes) {
  const Extents extents = ExtentsOf(pictures);
  for (int64_t pass = 0; pass < passes; ++pass) network(pictures, extents);
}

TEST(RecordedTest, AShapeThatCannotBeRecordedIsTriedAgainEverLessOften) {
  Log log;
  const Recorded network(kReplayed, /*record=*/true, Twice, GraphsOf(&log));
  log.on_record = RunOutOfMemory;
  ExpectTwice(network, Pictures(2));
  int tries = 1;
  ASSERT_EQ(Recorded::kMaxPassesToRetry, 16 * Recorded::kPassesToRetry);
  for (const int64_t times : {1, 2, 4, 8, 16, 16}) {
    RunPasses(network, Pictures(2), times * Recorded::kPassesToRetry - 1);
    ASSERT_EQ(log.recorded, tries) << times;
    ExpectTwice(network, Pictures(2));
    ASSERT_EQ(log.recorded, ++tries) << times;
  }
}

TEST(RecordedTest, AShapeIsRecordedWhenThereIsMemoryAgain) {
  Log log;
  const Recorded network(kReplayed, /*record=*/true, Twice, GraphsOf(&log));
  log.on_record = RunOutOfMemory;
  ExpectTwice(network, Pictures(2));
  log.on_record = [] {};
  // Passes over other shapes do not count.
  RunPasses(network, Pictures(1), Recorded::kPassesToRetry);
  EXPECT_EQ(log.recorded, 2);
  RunPasses(network, Pictures(2), Recorded::kPassesToRetry - 1);
  EXPECT_EQ(log.recorded, 2);
  ExpectTwice(network, Pictures(2));
  EXPECT_EQ(log.recorded, 3);
  EXPECT_EQ(log.alive, 2);
  const int replayed = log.replayed;
  ExpectTwice(network, Pictures(2).add(0.5));
  EXPECT_EQ(log.replayed, replayed + 1);
  EXPECT_EQ(log.recorded, 3);
}

TEST(RecordedTest, ARecordingThatSucceededForgetsEarlierFailures) {
  Log log;
  int64_t too_large = 0;
  const Recorded network(
      kReplayed, /*record=*/true,
      [&](const FeatureMap& pictures) {
        if (too_large > 0 && pictures.values.size(0) >= too_large && log.alive > 0) RunOutOfMemory();
        return Twice(pictures);
      },
      GraphsOf(&log));
  log.on_record = RunOutOfMemory;
  ExpectTwice(network, Pictures(2));
  log.on_record = [] {};
  RunPasses(network, Pictures(2), Recorded::kPassesToRetry);
  EXPECT_EQ(log.recorded, 2);
  EXPECT_EQ(log.alive, 1);
  // A pass over another shape finds no memory, and frees the recording.
  too_large = 4;
  ExpectTwice(network, Pictures(4));
  EXPECT_EQ(log.alive, 0);
  too_large = 0;
  log.on_record = RunOutOfMemory;
  const int recorded = log.recorded;
  ExpectTwice(network, Pictures(2));
  EXPECT_EQ(log.recorded, recorded + 1);
  log.on_record = [] {};
  RunPasses(network, Pictures(2), Recorded::kPassesToRetry - 1);
  EXPECT_EQ(log.recorded, recorded + 1);
  ExpectTwice(network, Pictures(2));
  EXPECT_EQ(log.recorded, recorded + 2);
}

TEST(RecordedTest, ADirectPassThatRunsOutOfMemoryFreesTheRecordings) {
  Log log;
  int64_t too_large = 0;
  const Recorded network(
      kReplayed, /*record=*/true,
      [&](const FeatureMap& pictures) {
        if (pictures.values.size(0) >= too_large && log.alive > 0 && too_large > 0) RunOutOfMemory();
        return Twice(pictures);
      },
      GraphsOf(&log));
  ExpectTwice(network, Pictures(1));
  too_large = 4;
  // Recording runs out of memory too, so it is noted.
  ExpectTwice(network, Pictures(4));
  ExpectTwice(network, Pictures(1));
  EXPECT_EQ(log.alive, 1);
  ExpectTwice(network, Pictures(4));
  EXPECT_EQ(log.alive, 0);
}

TEST(RecordedTest, RecordingsThatAreDroppedForOthersAreMadeAgain) {
  Log log;
  const Recorded twice(kReplayed, true, Twice, GraphsOf(&log));
  EXPECT_FALSE(twice.DropRecordings());
  const at::Tensor pixels = at::arange(16, at::kFloat).view({1, 1, 4, 4});
  const Extents extents({{4, 4}});
  twice(pixels, extents);
  EXPECT_TRUE(twice.DropRecordings());
  EXPECT_EQ(log.alive, 0);
  EXPECT_TRUE(twice(pixels, extents).front().values.equal(pixels.mul(2)));
  EXPECT_EQ(log.recorded, 2);
}

TEST(RecordedTest, WithoutRecordingsMemoryThatDoesNotSufficeIsAnError) {
  const Recorded network(kReplayed, /*record=*/true, [](const FeatureMap&) -> std::vector<FeatureMap> {
    RunOutOfMemory();
    return {};
  });
  EXPECT_THROW(network(Pictures(1), ExtentsOf(Pictures(1))), c10::OutOfMemoryError);
}

TEST(RecordedTest, OtherErrorsOfARecordingAreErrorsAndTriedAgain) {
  Log log;
  const Recorded network(kReplayed, /*record=*/true, Twice, GraphsOf(&log));
  log.on_record = [] { throw std::runtime_error("operation not permitted when stream is capturing"); };
  EXPECT_THROW(network(Pictures(1), ExtentsOf(Pictures(1))), std::runtime_error);
  log.on_record = [] {};
  ExpectTwice(network, Pictures(1));
  EXPECT_EQ(log.recorded, 2);
}

TEST(RecordedTest, ShapesThatShouldComeAgainAreRecordedOnlyThen) {
  Log log;
  const Recorded network(kReplayed, /*record=*/true, Twice, GraphsOf(&log), {.recordings = 2, .passes = 3});
  RunPasses(network, Pictures(1, 4), 2);
  for (int64_t width = 5; width < 50; ++width) ExpectTwice(network, Pictures(1, width));
  EXPECT_EQ(log.recorded, 0);
  ExpectTwice(network, Pictures(1, 4));
  EXPECT_EQ(log.recorded, 1);
  ExpectTwice(network, Pictures(1, 4).add(0.5));
  EXPECT_EQ(log.replayed, 2);
  RunPasses(network, Pictures(1, 5), 2);
  EXPECT_EQ(log.alive, 2);
  // There is no room for more, as with other limits.
  RunPasses(network, Pictures(1, 6), Recorded::kPassesToReplace - 1);
  EXPECT_EQ(log.recorded, 2);
  ExpectTwice(network, Pictures(1, 6));
  EXPECT_EQ(log.recorded, 3);
  EXPECT_EQ(log.alive, 2);
}

TEST(RecordedTest, ARecordingThatAloneTakesTooMuchMemoryIsNotKept) {
  Log log;
  log.gpu_bytes = Recorded::kPartsOfGpuMemory * 1000;
  log.bytes_of_recording = 1001;
  const Recorded network(kReplayed, /*record=*/true, Twice, GraphsOf(&log));
  ExpectTwice(network, Pictures(8));
  EXPECT_EQ(log.recorded, 1);
  EXPECT_EQ(log.alive, 0);
  RunPasses(network, Pictures(8), Recorded::kPassesToRetry - 1);
  EXPECT_EQ(log.recorded, 1);
  // Other shapes are recorded, in a pool of their own.
  log.bytes_of_recording = 1000;
  ExpectTwice(network, Pictures(1));
  EXPECT_EQ(log.alive, 1);
  EXPECT_EQ(log.beside.back(), nullptr);
}

TEST(RecordedTest, RecordingsThatTogetherTakeTooMuchMemoryAreFreedAndThenFewer) {
  Log log;
  log.gpu_bytes = Recorded::kPartsOfGpuMemory * 1000;
  log.bytes_of_recording = 300;
  const Recorded network(kReplayed, /*record=*/true, Twice, GraphsOf(&log));
  for (int64_t count = 1; count <= 3; ++count) ExpectTwice(network, Pictures(count));
  EXPECT_EQ(log.alive, 3);
  ExpectTwice(network, Pictures(4));
  EXPECT_EQ(log.recorded, 4);
  EXPECT_EQ(log.alive, 0);
  // From now on there is room for three, and a fourth shape waits as for any room.
  for (int64_t count = 4; count >= 1; --count) ExpectTwice(network, Pictures(count));
  EXPECT_EQ(log.recorded, 7);
  EXPECT_EQ(log.alive, 3);
  RunPasses(network, Pictures(1), Recorded::kPassesToReplace - 1);
  EXPECT_EQ(log.recorded, 8);
  EXPECT_EQ(log.alive, 3);
}

void Await(const std::function<bool()>& met) {
  while (!met()) std::this_thread::yield();
}

// Two instances of a model share its stream. What one enqueues while the other's pass is captured would
// become part of the graph.
TEST(RecordedTest, NoOtherPassIsOnTheStreamDuringARecording) {
  StreamLock stream;
  Log log;
  std::atomic<bool> other_inside = false;
  std::atomic<bool> recording = false;
  std::atomic<bool> recorded = false;
  const Recorded network(kReplayed, /*record=*/true, Twice, GraphsOf(&log));
  log.on_record = [&] {
    recording = true;
    EXPECT_FALSE(other_inside);
    recorded = true;
  };
  std::thread other([&] {
    const StreamPass pass(stream);
    // Replays and everything around a recording, such as fetching results, are work on the stream too.
    other_inside = true;
    Await([&] { return recording || stream.counts().waiting_recordings == 1; });
    other_inside = false;
  });
  Await([&] { return other_inside.load(); });
  {
    const StreamPass pass(stream);
    ExpectTwice(network, Pictures(1));
  }
  other.join();
  EXPECT_TRUE(recorded);
}

TEST(RecordedTest, OfTwoPassesThatWouldRecordAShapeOneTriesIfMemoryIsInsufficient) {
  StreamLock stream;
  Log log;
  const Recorded network(kReplayed, /*record=*/true, Twice, GraphsOf(&log));
  log.on_record = [&] {
    // A recording begins when each pass on the stream has ended or wants to record too.
    EXPECT_EQ(stream.counts().waiting_recordings, 1);
    RunOutOfMemory();
  };
  std::atomic<int> inside = 0;
  const auto run = [&] {
    const StreamPass pass(stream);
    ++inside;
    Await([&] { return inside == 2; });
    ExpectTwice(network, Pictures(2));
  };
  std::thread other(run);
  run();
  other.join();
  EXPECT_EQ(log.recorded, 1);
}

TEST(RecordedTest, APassThatBeginsDuringARecordingWaits) {
  StreamLock stream;
  Log log;
  std::atomic<bool> other_inside = false;
  std::thread other;
  const Recorded network(kReplayed, /*record=*/true, Twice, GraphsOf(&log));
  log.on_record = [&] {
    other = std::thread([&] {
      const StreamPass pass(stream);
      other_inside = true;
    });
    Await([&] { return other_inside || stream.counts().waiting_passes == 1; });
    EXPECT_FALSE(other_inside);
  };
  {
    const StreamPass pass(stream);
    ExpectTwice(network, Pictures(1));
  }
  other.join();
}

TEST(RecordedTest, InstancesRecordAndReplayTogetherWithoutWaitingForEachOtherForEver) {
  StreamLock stream;
  Log log;
  const Recorded network(kReplayed, /*record=*/true, Twice, GraphsOf(&log));
  std::vector<std::thread> instances;
  for (int64_t instance = 0; instance < 3; ++instance) {
    instances.emplace_back([&, instance] {
      for (int64_t pass = 0; pass < 60; ++pass) {
        const StreamPass on(stream);
        ExpectTwice(network, Pictures(1 + (pass + instance) % 8, 1 + pass % 4));
      }
    });
  }
  for (std::thread& instance : instances) instance.join();
  EXPECT_EQ(log.recorded, log.alive);
}

TEST(OutOfMemoryTest, IsKnownByTypeCodeAndText) {
  const auto is = [](const auto& error) { return IsOutOfMemory(error); };
  EXPECT_TRUE(is(std::bad_alloc()));
  EXPECT_TRUE(is(c10::AcceleratorError({__func__, __FILE__, __LINE__}, 2, "CUDA error: out of memory")));
  EXPECT_TRUE(is(std::runtime_error("The following operation failed: CUDA out of memory. Tried to")));
  EXPECT_TRUE(is(std::runtime_error("cuDNN error: CUDNN_STATUS_ALLOC_FAILED")));
  EXPECT_TRUE(is(std::runtime_error("the package failed: Error: std::bad_alloc")));
  EXPECT_FALSE(is(c10::AcceleratorError({__func__, __FILE__, __LINE__}, 700, "CUDA error: illegal")));
  EXPECT_FALSE(is(std::runtime_error("out of range")));
  try {
    RunOutOfMemory();
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_TRUE(is(error));
  }
}

}  // namespace
}  // namespace saccade::models
