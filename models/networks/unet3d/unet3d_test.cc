#include "models/networks/unet3d/unet3d.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "models/networks/unet3d/projection.h"
#include "models/networks/unet3d/testing/models.h"

namespace saccade::models {
namespace {

using ::testing::HasSubstr;
using testing::MakeUnet;
using testing::Volumes;

Options Narrow(const std::string& tile) { return {{"width", "0.25"}, {"heads", "2"}, {"tile", tile}}; }

const Restoration& Restored(const TaskResult& result) { return std::get<Restoration>(result); }

// Returns the largest difference, relative to the largest value.
double Difference(const TaskResult& a, const TaskResult& b) {
  const std::vector<float>& expected = Restored(a).values;
  const std::vector<float>& got = Restored(b).values;
  EXPECT_EQ(expected.size(), got.size());
  double largest = 0;
  double off = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    off = std::max(off, std::abs(static_cast<double>(got[i]) - expected[i]));
  }
  return off / largest;
}

class UnetTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { at::manual_seed(7); }
};

TEST_P(UnetTest, AnswersWithTheVolumesSides) {
  const auto model = MakeUnet(GetParam(), Narrow("96"));
  for (const auto& [depth, height, width] : std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {5, 9, 14}}) {
    const Restoration got = Restored(model->Run(Volumes(1, depth, height, width)).at(0));
    EXPECT_EQ(got.depth, std::string(GetParam()).ends_with("project") ? 1 : depth);
    EXPECT_EQ(got.height, height);
    EXPECT_EQ(got.width, width);
    EXPECT_EQ(got.values.size(), static_cast<size_t>(got.depth * height * width));
  }
}

TEST_P(UnetTest, TilesChangeNothing) {
  const Batch batch = Volumes(1, 6, 31, 46);
  for (const char* attention : {"sao", "none"}) {
    const auto made = [&](const char* tile) {
      Options options = Narrow(tile);
      options["attention"] = attention;
      return MakeUnet(GetParam(), options)->Run(batch).at(0);
    };
    const TaskResult whole = made("0");
    for (const char* tile : {"2", "7", "16"}) EXPECT_LT(Difference(whole, made(tile)), 1e-5) << tile;
  }
}

TEST_P(UnetTest, AVolumesAnswerIsItsOwn) {
  const auto model = MakeUnet(GetParam(), Narrow("12"));
  const Batch batch = Volumes(3, 6, 21, 34);
  const std::vector<TaskResult> together = model->Run(batch);
  ASSERT_EQ(together.size(), 3U);
  EXPECT_NE(Restored(together[0]).values, Restored(together[1]).values);
  for (size_t i = 0; i < 3; ++i) {
    const Batch alone = {batch.pixels.narrow(0, static_cast<int64_t>(i), 1), {batch.placements[i]}};
    EXPECT_EQ(Restored(model->Run(alone).at(0)).values, Restored(together[i]).values) << i;
  }
}

TEST_P(UnetTest, AnswersTheSameOnOneThread) {
  const auto model = MakeUnet(GetParam(), Narrow("12"));
  const Batch batch = Volumes(1, 6, 21, 34);
  const TaskResult expected = model->Run(batch).at(0);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  EXPECT_EQ(Restored(model->Run(batch).at(0)).values, Restored(expected).values);
  at::set_num_threads(threads);
}

TEST_P(UnetTest, OnlyTheVolumeThatIsNotFiniteFails) {
  const auto model = MakeUnet(GetParam(), Narrow("96"));
  Batch batch = Volumes(3, 4, 8, 8);
  const std::vector<TaskResult> sound = model->Run(batch);
  batch.pixels[1][0][3][2][1] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<TaskResult> results = model->Run(batch);
  EXPECT_EQ(Restored(results.at(0)).values, Restored(sound[0]).values);
  EXPECT_THAT(std::get<Failure>(results.at(1)).message, HasSubstr("not finite"));
  EXPECT_EQ(Restored(results.at(2)).values, Restored(sound[2]).values);
}

TEST_P(UnetTest, AnswersThatAreNotFiniteFail) {
  Options options = Narrow("96");
  options["normalize"] = "none";
  Batch batch = Volumes(1, 4, 8, 8);
  batch.pixels.mul_(1e35);
  EXPECT_THAT(std::get<Failure>(MakeUnet(GetParam(), options)->Run(batch).at(0)).message,
              HasSubstr("a value that is not finite"));
}

TEST_P(UnetTest, ReportsItsProgress) {
  const auto model = MakeUnet(GetParam(), Narrow("12"));
  Batch batch = Volumes(2, 6, 21, 34);
  std::vector<std::vector<double>> reports(2);
  batch.progress = [&](size_t item, double done) {
    reports.at(item).push_back(done);
    return true;
  };
  model->Run(batch);
  for (const std::vector<double>& done : reports) {
    EXPECT_GT(done.size(), 12U);  // one per tile and stage
    EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
    EXPECT_GT(done.front(), 0);
    EXPECT_EQ(done.back(), 1);
  }
}

TEST_P(UnetTest, GivesUpWhatNobodyWants) {
  const auto model = MakeUnet(GetParam(), Narrow("12"));
  Batch batch = Volumes(2, 6, 21, 34);
  const std::vector<TaskResult> sound = model->Run(batch);
  int calls = 0;
  batch.progress = [&](size_t item, double done) {
    calls += item == 0 ? 1 : 0;
    return item == 1 || done < 0.3;
  };
  const std::vector<TaskResult> results = model->Run(batch);
  EXPECT_THAT(std::get<Failure>(results.at(0)).message, HasSubstr("no client waits"));
  EXPECT_GT(calls, 1);
  EXPECT_EQ(Restored(results.at(1)).values, Restored(sound[1]).values);
  batch.progress = [&](size_t /*item*/, double done) {
    EXPECT_LT(done, 0.5);  // the first report is the last
    return false;
  };
  model->Run(batch);
}

// Runs the GPU's code path on the CPU: ATen's operators, and bfloat16.
TEST_P(UnetTest, AgreesOnOtherTargets) {
  const Batch batch = Volumes(1, 6, 21, 34);
  const TaskResult expected = MakeUnet(GetParam(), Narrow("12"))->Run(batch).at(0);
  const auto made = [&](Precision precision) {
    return MakeUnet(GetParam(), Narrow("12"), {.precision = precision, .replay_on_cpu = true})
        ->Run(batch)
        .at(0);
  };
  EXPECT_LT(Difference(expected, made(Precision::kTf32)), 1e-5);
  EXPECT_LT(Difference(expected, made(Precision::kBFloat16)), 0.05);
}

TEST_P(UnetTest, RefusesOtherBatches) {
  const auto model = MakeUnet(GetParam(), Narrow("96"));
  Batch batch = Volumes(1, 4, 8, 8);
  batch.placements[0].depth = 5;
  EXPECT_THROW(model->Run(batch), c10::Error);
  EXPECT_THROW(model->Run({batch.pixels[0], batch.placements}), c10::Error);
}

int64_t WindowPositions(const Tiling& tiling) { return Positions(tiling.Around(tiling.Core(0), 12).size); }

// Windows have the whole depth, so only their height and width can bound memory.
TEST(ProjectionTiling, MakesSmallerTilesOfDeepVolumes) {
  EXPECT_EQ(ProjectionTiling({50, 800, 800}, 96).Core(0).size, (VolumeSides{50, 92, 92}));
  EXPECT_EQ(ProjectionTiling({2000, 400, 400}, 96).Core(0).size, (VolumeSides{2000, 40, 40}));
  EXPECT_EQ(ProjectionTiling({65'535, 40, 48}, 96).Core(0).size, (VolumeSides{65'535, 4, 4}));
  EXPECT_EQ(ProjectionTiling({2000, 400, 400}, 0).count(), 1);
  EXPECT_EQ(ProjectionTiling({2000, 64, 64}, 96).count(), 1) << "the whole plane has few positions";
  for (const int64_t depth : {1, 583, 3000, 8000})
    EXPECT_LE(WindowPositions(ProjectionTiling({depth, 400, 400}, 96)), int64_t{1} << 23) << depth;
}

INSTANTIATE_TEST_SUITE_P(All, UnetTest, ::testing::Values("unet3d_sao_denoise", "unet3d_sao_project"),
                         [](const auto& param) { return std::string(param.param).substr(11); });

}  // namespace
}  // namespace saccade::models
