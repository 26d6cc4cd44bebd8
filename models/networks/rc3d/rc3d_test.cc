#include "models/networks/rc3d/rc3d.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "kernels/common/cpu_isa.h"
#include "models/api/attention_probe.h"
#include "models/networks/rc3d/testing/models.h"

namespace saccade::models {
namespace {

using testing::Clips;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MakeRc3d;
using testing::NarrowRc3d;
using ::testing::Not;
using testing::Rc3dTensors;
using ::testing::SizeIs;

Batch Alone(const Batch& batch, size_t i) {
  return {batch.pixels.narrow(0, static_cast<int64_t>(i), 1), {batch.placements[i]}};
}

// Returns all numbers of a result.
std::vector<float> Values(const TaskResult& result) {
  std::vector<float> values;
  for (const Action& action : std::get<Actions>(result).items)
    values.insert(values.end(), {action.start, action.end, action.score, static_cast<float>(action.label)});
  return values;
}

TEST(Rc3d, AnswersWithinTheClipBestFirst) {
  const auto model = MakeRc3d(NarrowRc3d());
  const std::vector<TaskResult> results = model->Run(Clips({48, 37}, 48, 32));
  ASSERT_THAT(results, SizeIs(2));
  for (size_t i = 0; i < 2; ++i) {
    const auto& actions = std::get<Actions>(results[i]);
    EXPECT_EQ(actions.frames, i == 0 ? 48 : 37);
    ASSERT_THAT(actions.items, Not(IsEmpty()));
    float before = 1;
    for (const Action& action : actions.items) {
      EXPECT_GE(action.start, 0);
      EXPECT_GE(action.end - action.start, 1);
      EXPECT_LE(action.end, static_cast<float>(actions.frames));
      EXPECT_LE(action.score, before);
      EXPECT_GE(action.label, 1);
      EXPECT_LT(action.label, 4);
      before = action.score;
    }
  }
  EXPECT_NE(Values(results[0]), Values(results[1]));
}

TEST(Rc3d, AClipsAnswerIsItsOwn) {
  const auto model = MakeRc3d(NarrowRc3d());
  const Batch batch = Clips({48, 33, 40}, 48, 32);
  const std::vector<TaskResult> together = model->Run(batch);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(Values(model->Run(Alone(batch, i))[0]), Values(together[i])) << i;
}

TEST(Rc3d, AnswersTheSameOnSeveralThreads) {
  const auto model = MakeRc3d(NarrowRc3d());
  const Batch batch = Clips({32}, 32, 32);
  const std::vector<float> expected = Values(model->Run(batch)[0]);
  std::vector<std::vector<float>> got(3);
  std::vector<std::thread> threads;
  for (auto& values : got) threads.emplace_back([&] { values = Values(model->Run(batch)[0]); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(got, ElementsAre(expected, expected, expected));
}

TEST(Rc3d, NothingFoundIsAnAnswer) {
  const auto model = MakeRc3d(NarrowRc3d({{"score_threshold", "1"}}));
  const std::vector<TaskResult> results = model->Run(Clips({17}, 32, 32));
  EXPECT_THAT(std::get<Actions>(results[0]).items, IsEmpty());
  EXPECT_EQ(std::get<Actions>(results[0]).frames, 17);
  // A clip without proposals.
  TensorMap tensors = Rc3dTensors(NarrowRc3d());
  tensors["tpn.segment_pred.bias"].fill_(1e3);
  EXPECT_THAT(Values(MakeRc3d(NarrowRc3d(), tensors)->Run(Clips({16}, 16, 32))[0]), IsEmpty());
}

TEST(Rc3d, AClipThatIsNotFiniteFailsAlone) {
  const auto model = MakeRc3d(NarrowRc3d());
  const Batch batch = Clips({32, 32, 32}, 32, 32);
  const std::vector<TaskResult> clean = model->Run(batch);
  batch.pixels[1][2][31][31][31] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<TaskResult> results = model->Run(batch);
  EXPECT_EQ(Values(results[0]), Values(clean[0]));
  EXPECT_THAT(std::get<Failure>(results[1]).message, HasSubstr("not finite"));
  EXPECT_EQ(Values(results[2]), Values(clean[2]));
}

TEST(Rc3d, NumbersThatAreNotFiniteAreFailures) {
  for (const auto& [name, message] : {std::pair{"tpn.cls_logits.weight", "a proposal"},
                                      {"head.cls_score.weight", "a score or a segment"}}) {
    TensorMap tensors = Rc3dTensors(NarrowRc3d());
    tensors[name].fill_(3e38F);
    EXPECT_THAT(std::get<Failure>(MakeRc3d(NarrowRc3d(), tensors)->Run(Clips({16}, 16, 32))[0]).message,
                HasSubstr(message));
  }
}

// The heads' ReLUs turn NaN into 0.
TEST(Rc3d, AMapThatIsNotFiniteIsAFailureWhateverTheHeadsMakeOfIt) {
  const Options options = NarrowRc3d({{"blocks", "1,1,1,1"}});
  TensorMap tensors = Rc3dTensors(options);
  for (const char* name : {"layer3.0.bn3.bias", "layer3.0.downsample.1.bias"}) tensors[name].fill_(3e38F);
  const TaskResult result = MakeRc3d(options, tensors)->Run(Clips({16}, 16, 32))[0];
  EXPECT_THAT(std::get<Failure>(result).message, HasSubstr("a feature"));
  EXPECT_FALSE(std::get<Failure>(result).of_input);
}

TEST(Rc3d, RefusesClipsThatItCannotTake) {
  const auto model = MakeRc3d(NarrowRc3d());
  for (const auto& [frames, side] : {std::pair<int64_t, int64_t>{24, 32}, {80, 32}, {32, 48}}) {
    EXPECT_THROW(model->Run(Clips({frames}, frames, side)), c10::Error) << frames << ' ' << side;
  }
}

TEST(Rc3d, WeightsWithoutAttentionAnswerAsWithoutIt) {
  const Options plain = NarrowRc3d({{"attention", "none"}});
  const auto without = MakeRc3d(plain);
  EXPECT_THAT(without->description().notes, IsEmpty());
  const Batch batch = Clips({30}, 32, 32);
  const auto identity = MakeRc3d(NarrowRc3d(), Rc3dTensors(plain));
  EXPECT_THAT(identity->description().notes, ElementsAre(HasSubstr("res3"), HasSubstr("res4")));
  EXPECT_THAT(identity->description().attention_layers, IsEmpty());
  EXPECT_EQ(Values(identity->Run(batch)[0]), Values(without->Run(batch)[0]));
  EXPECT_NE(Values(MakeRc3d(NarrowRc3d())->Run(batch)[0]), Values(without->Run(batch)[0]));
}

// The samples of res4 are proposals and not clips, so its maps would be returned for the wrong clips.
TEST(Rc3d, MapsAreOfTheClipAndNotOfItsProposals) {
  const auto model = MakeRc3d(NarrowRc3d());
  EXPECT_THAT(model->description().attention_layers, ElementsAre("attention.res3"));
  AttentionProbe probe(
      {ExplanationWish{.layer = "attention.res3"}, ExplanationWish{.layer = "attention.res4"}});
  const AttentionProbe::Scope scope(&probe);
  model->Run(Clips({32, 32}, 32, 32));
  EXPECT_TRUE(probe.TakeOut(0).has_value());
  EXPECT_FALSE(probe.TakeOut(1).has_value());
}

TEST(Rc3d, TellsHowFarItIsAndStopsWhenNobodyWaits) {
  const auto model = MakeRc3d(NarrowRc3d());
  Batch batch = Clips({32, 32}, 32, 32);
  const std::vector<TaskResult> undisturbed = model->Run(batch);
  std::vector<double> done;
  batch.progress = [&](size_t item, double share) {
    if (item == 1) done.push_back(share);
    return item == 1 || share < 0.5;
  };
  const std::vector<TaskResult> results = model->Run(batch);
  EXPECT_THAT(std::get<Failure>(results[0]).message, HasSubstr("no client waits"));
  EXPECT_EQ(Values(results[1]), Values(undisturbed[1]));
  EXPECT_THAT(done, SizeIs(4));
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_LT(done.back(), 1);
}

// Uses ATen's operators instead of packed ones, as on a GPU.
TEST(Rc3d, AnswersTheSameUnpacked) {
  const TensorMap tensors = Rc3dTensors(NarrowRc3d());
  const Batch batch = Clips({48}, 48, 32);
  const std::vector<float> packed = Values(MakeRc3d(NarrowRc3d(), tensors)->Run(batch)[0]);
  const std::vector<float> plain =
      Values(MakeRc3d(NarrowRc3d(), tensors, {.precision = Precision::kTf32})->Run(batch)[0]);
  EXPECT_THAT(plain, ::testing::Pointwise(::testing::FloatNear(1e-3F), packed));
  // LibTorch's convolutions of videos in bfloat16 need it. The daemon asks for more.
  if (kernels::BestCpuIsa() != kernels::CpuIsa::kAvx512) return;
  const auto coarse = MakeRc3d(NarrowRc3d(), tensors, {.precision = Precision::kBFloat16})->Run(batch);
  EXPECT_TRUE(std::holds_alternative<Actions>(coarse[0]));
}

}  // namespace
}  // namespace saccade::models
