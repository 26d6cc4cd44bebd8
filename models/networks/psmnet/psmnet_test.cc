#include "models/networks/psmnet/psmnet.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "models/networks/psmnet/testing/models.h"

namespace saccade::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MakePsmnet;

const Options kNarrow = {{"width", "0.25"}, {"max_disparity", "32"}, {"buckets", "64x96"}};

Options With(Options options, const std::string& name, const std::string& value) {
  options[name] = value;
  return options;
}

// Random pairs of these sizes in one bucket.
Batch Pairs(const std::vector<Size>& sizes, Size bucket) {
  Batch batch;
  batch.pixels = at::zeros({static_cast<int64_t>(sizes.size()), 6, bucket.height, bucket.width});
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Size size = sizes[i];
    batch.pixels[static_cast<int64_t>(i)]
        .narrow(1, 0, size.height)
        .narrow(2, 0, size.width)
        .copy_(at::randn({6, size.height, size.width}));
    batch.placements.push_back({size, size, bucket});
  }
  return batch;
}

Batch Alone(const Batch& batch, size_t i) {
  return {batch.pixels.narrow(0, static_cast<int64_t>(i), 1), {batch.placements[i]}};
}

const std::vector<float>& Values(const TaskResult& result) { return std::get<Disparity>(result).values; }

TEST(Psmnet, APairsAnswerIsItsOwn) {
  const auto model = MakePsmnet(kNarrow);
  const Batch batch = Pairs({{64, 96}, {50, 80}, {17, 33}}, {64, 96});
  const std::vector<TaskResult> together = model->Run(batch);
  ASSERT_EQ(together.size(), 3U);
  for (size_t i = 0; i < together.size(); ++i) {
    const std::vector<TaskResult> alone = model->Run(Alone(batch, i));
    EXPECT_EQ(Values(alone[0]), Values(together[i])) << i;
    const Size size = batch.placements[i].sent;
    EXPECT_EQ(Values(alone[0]).size(), static_cast<size_t>(size.height * size.width));
  }
  EXPECT_NE(Values(together[0])[0], Values(together[1])[0]);
}

TEST(Psmnet, AnswersTheSameOnSeveralThreads) {
  const auto model = MakePsmnet(kNarrow);
  const Batch batch = Pairs({{64, 96}}, {64, 96});
  const std::vector<float> expected = Values(model->Run(batch)[0]);
  std::vector<std::vector<float>> got(3);
  std::vector<std::thread> threads;
  for (auto& values : got) threads.emplace_back([&] { values = Values(model->Run(batch)[0]); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(got, ElementsAre(expected, expected, expected));
}

TEST(Psmnet, ExactAnswersAsWithoutPadding) {
  const auto exact = MakePsmnet(With(kNarrow, "exact", "true"));
  const auto unpadded = MakePsmnet(With(kNarrow, "buckets", "stride:16"));
  const Batch padded = Pairs({{40, 70}}, {64, 96});
  const Batch tight = {padded.pixels.narrow(2, 0, 48).narrow(3, 0, 80), {{{40, 70}, {40, 70}, {48, 80}}}};
  const std::vector<float> expected = Values(unpadded->Run(tight)[0]);
  EXPECT_EQ(Values(exact->Run(padded)[0]), expected);
  EXPECT_NE(Values(MakePsmnet(With(kNarrow, "exact", "false"))->Run(padded)[0]), expected);
}

TEST(Psmnet, RefusesABucketThatHourglassesCannotHalve) {
  const auto model = MakePsmnet(kNarrow);
  try {
    model->Run(Pairs({{40, 72}}, {40, 72}));
    FAIL();
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("multiples of 16, got 40 x 72"));
  }
}

TEST(Psmnet, WeightsWithoutAttentionAnswerAsWithoutIt) {
  const Options plain = With(kNarrow, "attention", "none");
  const auto without = MakePsmnet(plain);
  EXPECT_THAT(without->description().notes, IsEmpty());
  const auto identity = MakePsmnet(kNarrow, plain);
  EXPECT_THAT(identity->description().notes, ElementsAre(HasSubstr("attention")));
  const Batch batch = Pairs({{64, 96}}, {64, 96});
  EXPECT_EQ(Values(identity->Run(batch)[0]), Values(without->Run(batch)[0]));
  EXPECT_NE(Values(MakePsmnet(kNarrow)->Run(batch)[0]), Values(without->Run(batch)[0]));
}

}  // namespace
}  // namespace saccade::models
