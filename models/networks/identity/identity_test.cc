#include "models/networks/identity/identity.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "models/api/error.h"
#include "models/api/registry.h"

namespace saccade::models {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Model> Make(const Options& options) { return Load("identity", options, "no such file"); }

Batch BatchOf(const at::Tensor& volumes) {
  const Placement whole = PlacementOfVolume({volumes.size(3), volumes.size(4)}, volumes.size(2));
  return {volumes, std::vector<Placement>(static_cast<size_t>(volumes.size(0)), whole)};
}

at::Tensor Filled(float value) { return at::full({1, 1, 1, 2, 3}, value); }

std::chrono::duration<double, std::milli> TimeOf(const Model& model, const at::Tensor& volumes) {
  const auto start = std::chrono::steady_clock::now();
  model.Run(BatchOf(volumes));
  return std::chrono::steady_clock::now() - start;
}

std::string Refused(const Options& options) {
  try {
    Describe("identity", options);
    return "";
  } catch (const LoadError& error) {
    return error.what();
  }
}

TEST(Identity, GivesBackEachVolumeBitForBit) {
  // More values than one of the pieces that the model copies, and not a multiple of it.
  const at::Tensor volumes = at::randn({3, 1, 2, 65, 67});
  const std::vector<TaskResult> results = Make({})->Run(BatchOf(volumes));
  ASSERT_EQ(results.size(), 3U);
  for (int64_t i = 0; i < 3; ++i) {
    const auto& result = std::get<Restoration>(results[static_cast<size_t>(i)]);
    EXPECT_EQ(result.depth, 2);
    EXPECT_EQ(result.height, 65);
    EXPECT_EQ(result.width, 67);
    const float* expected = volumes[i].const_data_ptr<float>();
    EXPECT_EQ(result.values, std::vector<float>(expected, expected + volumes[i].numel())) << i;
  }
}

TEST(Identity, AVolumeThatIsNotFiniteFailsAlone) {
  at::Tensor volumes = at::randn({2, 1, 1, 80, 80});
  volumes[0][0][0][79][79] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<TaskResult> results = Make({})->Run(BatchOf(volumes));
  EXPECT_THAT(std::get<Failure>(results[0]).message, HasSubstr("not finite"));
  EXPECT_TRUE(std::holds_alternative<Restoration>(results[1]));
}

TEST(Identity, TakesTheTimeItIsTold) {
  for (const char* delay : {"sleep", "busy"}) {
    const auto model = Make({{"delay_ms", "20"}, {"delay_ms_per_item", "15"}, {"delay", delay}});
    EXPECT_GE(TimeOf(*model, Filled(1)).count(), 35) << delay;
    EXPECT_GE(TimeOf(*model, at::cat({Filled(1), Filled(2)})).count(), 50) << delay;
  }
}

TEST(Identity, ADrillThrowsForTheWholePass) {
  const auto model = Make({{"fail_at", "-1.5"}});
  EXPECT_NO_THROW(model->Run(BatchOf(Filled(1.5))));
  const at::Tensor mixed = at::cat({Filled(1), Filled(-1.5)});
  EXPECT_THROW(model->Run(BatchOf(mixed)), std::runtime_error);
}

TEST(Identity, ADrillHangs) {
  const auto model = Make({{"hang_at", "7"}, {"hang_seconds", "0.05"}});
  EXPECT_GE(TimeOf(*model, Filled(7)).count(), 50);
}

TEST(Identity, ADrillBreaksTheFirstThreadThatComputes) {
  const std::string file = testing::TempDir() + "/broken_thread";
  const auto model = Make({{"broken_thread_file", file}});
  const auto elsewhere = [&] {
    bool works = false;
    std::thread([&] { works = model->Run(BatchOf(Filled(1))).size() == 1; }).join();
    return works;
  };
  EXPECT_NO_THROW(model->Run(BatchOf(Filled(1))));
  std::ofstream(file) << "broken";
  EXPECT_THROW(model->Run(BatchOf(Filled(1))), std::runtime_error);
  EXPECT_TRUE(elsewhere());
  EXPECT_THROW(model->Run(BatchOf(Filled(1))), std::runtime_error);
  std::filesystem::remove(file);
  EXPECT_NO_THROW(model->Run(BatchOf(Filled(1))));
}

TEST(Identity, ADrillTakesTheDeviceOfTheFirstThread) {
  const auto model = Make({{"lose_device_at", "7"}});
  EXPECT_NO_THROW(model->Run(BatchOf(Filled(1))));
  EXPECT_THROW(model->Run(BatchOf(Filled(7))), c10::AcceleratorError);
  EXPECT_THROW(model->Run(BatchOf(Filled(1))), c10::AcceleratorError) << "the error is sticky";
  bool works = false;
  std::thread([&] { works = model->Run(BatchOf(Filled(7))).size() == 1; }).join();
  EXPECT_TRUE(works) << "another thread has another device";
}

TEST(Identity, DescribesItself) {
  const Description description = Describe("identity", {{"fail_at", "2.5"}});
  EXPECT_EQ(description.task, Task::kRestoration);
  EXPECT_EQ(description.input.medium, Medium::kVolume);
  EXPECT_EQ(description.parameters, 0);
  EXPECT_EQ(description.options.at("fail_at"), "2.5");
  EXPECT_EQ(description.options.at("hang_at"), "none");
  EXPECT_TRUE(Count("identity", {}).layers.empty());
}

TEST(Identity, NamesItsDrills) {
  EXPECT_TRUE(
      Describe("identity", {{"delay_ms", "5"}, {"delay", "busy"}, {"hang_seconds", "1"}}).drills.empty())
      << "a delay is what a network's pass takes, and a hang's length alone changes nothing";
  const Options all = {{"no_room_above", "3"},
                       {"lose_device_at", "4"},
                       {"hang_at", "5"},
                       {"fail_at", "6"},
                       {"broken_thread_file", "broken"}};
  EXPECT_EQ(Describe("identity", all).drills,
            (std::vector<std::string>{"fail_at", "hang_at", "lose_device_at", "no_room_above",
                                      "broken_thread_file"}));
}

TEST(Identity, RefusesWhatWouldNotDo) {
  EXPECT_THAT(Refused({{"delay_ms", "-1"}}),
              HasSubstr("delay_ms is '-1'; expected a number from 0 to 60000"));
  // The warm-up's zeros would trigger the drill.
  EXPECT_THAT(Refused({{"fail_at", "0"}}), HasSubstr("none, or a finite number other than 0"));
  EXPECT_THAT(Refused({{"hang_at", "1x"}}), HasSubstr("hang_at is '1x'"));
  EXPECT_THAT(Refused({{"delay_s", "1"}}), HasSubstr("there is no option 'delay_s'"));
}

}  // namespace
}  // namespace saccade::models
