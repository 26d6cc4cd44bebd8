#include "models/networks/mask_rcnn/mask_rcnn.h"

#include <ATen/Context.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "models/api/error.h"
#include "models/networks/mask_rcnn/agreement.h"
#include "models/networks/mask_rcnn/checkpoint.h"
#include "models/networks/mask_rcnn/present_name.h"
#include "models/networks/mask_rcnn/testing/networks.h"
#include "models/testing/random_weights.h"

namespace saccade::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kR50 = "ea_mask_rcnn_r50";
constexpr Target kWhole{.replay_on_cpu = true};

using saccade::models::testing::MaskRcnnTensors;
using saccade::models::testing::NarrowMaskRcnn;

// A smooth picture, as photographs are; it fills the `scaled` part of the bucket.
at::Tensor Picture(const Placement& placement) {
  const at::Tensor coarse = at::randn({1, 3, 9, 9});
  const at::Tensor picture = at::zeros({1, 3, placement.bucket.height, placement.bucket.width});
  picture.narrow(2, 0, placement.scaled.height)
      .narrow(3, 0, placement.scaled.width)
      .copy_(at::upsample_bilinear2d(coarse, {placement.scaled.height, placement.scaled.width}, false));
  return picture;
}

Batch BatchOf(const std::vector<Placement>& placements) {
  Batch batch{at::zeros({static_cast<int64_t>(placements.size()), 3, placements[0].bucket.height,
                         placements[0].bucket.width}),
              placements};
  for (size_t i = 0; i < placements.size(); ++i) {
    batch.pixels[static_cast<int64_t>(i)].copy_(Picture(placements[i])[0]);
  }
  return batch;
}

Batch One(const Batch& batch, int64_t i) {
  return {batch.pixels.narrow(0, i, 1), {batch.placements[static_cast<size_t>(i)]}};
}

const std::vector<Detection>& Items(const TaskResult& result) { return std::get<Detections>(result).items; }

void ExpectSameBits(const TaskResult& a, const TaskResult& b) {
  ASSERT_EQ(Items(a).size(), Items(b).size());
  for (size_t i = 0; i < Items(a).size(); ++i) {
    const Detection& x = Items(a)[i];
    const Detection& y = Items(b)[i];
    EXPECT_EQ(x.x_min, y.x_min);
    EXPECT_EQ(x.y_min, y.y_min);
    EXPECT_EQ(x.x_max, y.x_max);
    EXPECT_EQ(x.y_max, y.y_max);
    EXPECT_EQ(x.score, y.score);
    EXPECT_EQ(x.label, y.label);
    EXPECT_EQ(x.mask, y.mask);
  }
}

// The largest difference between corresponding values, boxes relative to the picture's width; infinity if the
// numbers of detections differ.
double Difference(const TaskResult& a, const TaskResult& b) {
  if (Items(a).size() != Items(b).size()) return std::numeric_limits<double>::infinity();
  const double side = static_cast<double>(std::get<Detections>(a).width);
  double largest = 0;
  const auto note = [&](double x, double y) { largest = std::max(largest, std::fabs(x - y)); };
  for (size_t i = 0; i < Items(a).size(); ++i) {
    const Detection& x = Items(a)[i];
    const Detection& y = Items(b)[i];
    note(x.x_min / side, y.x_min / side);
    note(x.y_min / side, y.y_min / side);
    note(x.x_max / side, y.x_max / side);
    note(x.y_max / side, y.y_max / side);
    note(x.score, y.score);
    note(static_cast<double>(x.label), static_cast<double>(y.label));
    for (size_t pixel = 0; pixel < x.mask.size(); ++pixel) note(x.mask[pixel], y.mask[pixel]);
  }
  return largest;
}

class MaskRcnnTest : public ::testing::Test {
 protected:
  void SetUp() override {
    at::manual_seed(7);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Model> Make(const std::string& architecture, const Options& options,
                              const TensorMap& tensors, const Target& target = {}) const {
    testing::SaveSafetensors(tensors, path_);
    return LoadMaskRcnn(architecture, options, path_, {}, target);
  }
  std::unique_ptr<Model> Make(const Options& options) const {
    return Make(kR50, options, MaskRcnnTensors(kR50, options));
  }

  std::string Error(const Options& options, const TensorMap& tensors) const {
    try {
      Make(kR50, options, tensors);
      return "";
    } catch (const LoadError& error) {
      return error.what();
    }
  }

  std::string folder_ = ::testing::TempDir() + "/mask_rcnn_test." + std::to_string(getpid());
  std::string path_ = folder_ + "/weights";
};

TEST_F(MaskRcnnTest, FindsSomethingInItsPlace) {
  for (const char* fpn : {"paper", "torchvision"}) {
    const auto model = Make(NarrowMaskRcnn({{"fpn", fpn}}));
    const std::vector<TaskResult> results = model->Run(BatchOf({{{200, 300}, {100, 150}, {128, 160}}}));
    const auto& detections = std::get<Detections>(results.at(0));
    EXPECT_EQ(detections.mask_side, 28);
    EXPECT_EQ(detections.height, 200);
    EXPECT_EQ(detections.width, 300);
    ASSERT_FALSE(detections.items.empty());
    EXPECT_LE(detections.items.size(), 30U);
    float best = 1;
    for (const Detection& detection : detections.items) {
      EXPECT_GE(detection.x_min, 0);
      EXPECT_GE(detection.y_min, 0);
      EXPECT_LT(detection.x_min, detection.x_max);
      EXPECT_LT(detection.y_min, detection.y_max);
      EXPECT_LE(detection.x_max, 300);
      EXPECT_LE(detection.y_max, 200);
      EXPECT_LE(detection.score, best);
      EXPECT_GT(detection.score, 0.05F);
      best = detection.score;
      EXPECT_TRUE(detection.label >= 1 && detection.label < 4);
      EXPECT_EQ(detection.mask.size(), 28U * 28);
    }
  }
}

// Batching must not change a result, whatever else is in the batch, and however much of the bucket each
// picture fills.
TEST_F(MaskRcnnTest, AnswersDoNotDependOnTheBatch) {
  for (const Options& options :
       {NarrowMaskRcnn(), NarrowMaskRcnn({{"fpn", "torchvision"}, {"attention", "none"}}),
        NarrowMaskRcnn({{"exact", "true"}}), NarrowMaskRcnn({{"normalization", "scaling"}})}) {
    const auto model = Make(options);
    for (const Size bucket : {Size{128, 160}, Size{96, 96}, Size{160, 224}}) {
      const Size small{bucket.height - 31, bucket.width - 45};
      const Batch batch = BatchOf({{small, small, bucket},
                                   {{2 * bucket.height, 2 * bucket.width}, bucket, bucket},
                                   {small, {bucket.height, small.width}, bucket}});
      const std::vector<TaskResult> together = model->Run(batch);
      ASSERT_EQ(together.size(), 3U);
      for (int64_t i = 0; i < 3; ++i) {
        ASSERT_FALSE(Items(together[static_cast<size_t>(i)]).empty());
        ExpectSameBits(together[static_cast<size_t>(i)], model->Run(One(batch, i)).at(0));
      }
      const std::vector<TaskResult> two =
          model->Run({batch.pixels.narrow(0, 1, 2), {batch.placements[1], batch.placements[2]}});
      ExpectSameBits(together[1], two[0]);
      ExpectSameBits(together[2], two[1]);
    }
  }
}

TEST_F(MaskRcnnTest, ExactAnswersDoNotDependOnThePadding) {
  for (const Options& form : {Options{{"fpn", "paper"}}, Options{{"fpn", "torchvision"}}}) {
    Options options = NarrowMaskRcnn(form);
    options["score_threshold"] = "0.01";
    options["nms_threshold"] = "0.8";
    const TensorMap tensors = MaskRcnnTensors(kR50, options);
    const auto plain = Make(kR50, options, tensors);
    options["exact"] = "true";
    const auto exact = Make(kR50, options, tensors);
    for (const Size scaled : {Size{97, 131}, Size{64, 90}, Size{120, 101}}) {
      const Placement padded{{300, 400}, scaled, {128, 192}};
      const Placement alone{{300, 400}, scaled, scaled};
      const at::Tensor pixels = Picture(padded);
      const at::Tensor cut = pixels.narrow(2, 0, scaled.height).narrow(3, 0, scaled.width).contiguous();
      const TaskResult expected = exact->Run({cut, {alone}}).at(0);
      ASSERT_GT(Items(expected).size(), 3U);
      EXPECT_LT(Difference(exact->Run({pixels, {padded}}).at(0), expected), 1e-4);
      // Without `exact` the padding changes the result.
      EXPECT_GT(Difference(plain->Run({pixels, {padded}}).at(0), expected), 1e-3);
    }
  }
}

TEST_F(MaskRcnnTest, NothingFoundIsAnAnswer) {
  const auto model = Make(NarrowMaskRcnn({{"score_threshold", "1"}}));
  const std::vector<TaskResult> results = model->Run(BatchOf({{{64, 96}, {64, 96}, {64, 96}}}));
  EXPECT_TRUE(Items(results.at(0)).empty());
  EXPECT_EQ(std::get<Detections>(results[0]).mask_side, 28);
  EXPECT_EQ(std::get<Detections>(results[0]).width, 96);
}

// The picture has no valid positions on the deeper layers' maps, so attention there has no keys.
TEST_F(MaskRcnnTest, APictureOfOneLineIsNoError) {
  for (const char* exact : {"true", "false"}) {
    const auto model = Make(NarrowMaskRcnn({{"exact", exact}}));
    const std::vector<TaskResult> results = model->Run(BatchOf({{{1, 500}, {1, 120}, {32, 128}}}));
    for (const Detection& detection : Items(results.at(0))) EXPECT_LE(detection.y_max, 1);
  }
}

// Runs a batch of three pictures without and with a value in the second one that is not finite.
void ExpectThatItFailsAlone(const Model& model) {
  const Placement placement{{64, 96}, {64, 96}, {64, 96}};
  Batch batch = BatchOf({placement, placement, placement});
  const std::vector<TaskResult> clean = model.Run(batch);
  batch.pixels[1][2][63][95] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<TaskResult> results = model.Run(batch);
  ExpectSameBits(results[0], clean[0]);
  EXPECT_THAT(std::get<Failure>(results[1]).message, HasSubstr("input holds a value that is not finite"));
  EXPECT_TRUE(std::get<Failure>(results[1]).of_input);
  ExpectSameBits(results[2], clean[2]);
}

TEST_F(MaskRcnnTest, APictureThatIsNotFiniteFailsAlone) { ExpectThatItFailsAlone(*Make(NarrowMaskRcnn())); }

TEST_F(MaskRcnnTest, NumbersThatAreNotFiniteAreFailures) {
  const Batch batch = BatchOf({{{64, 96}, {64, 96}, {64, 96}}});
  for (const auto& [tensor, output] : std::vector<std::pair<std::string, std::string>>{
           {"rpn.head.cls_logits.weight", "a proposal"},
           {"roi_heads.box_predictor.cls_score.weight", "a score"},
           {"roi_heads.mask_predictor.mask_fcn_logits.weight", "a mask"}}) {
    TensorMap tensors = MaskRcnnTensors(kR50, NarrowMaskRcnn());
    tensors[tensor].fill_(3e38);
    for (const Target& target : {Target{}, kWhole}) {
      const TaskResult result = Make(kR50, NarrowMaskRcnn(), tensors, target)->Run(batch).at(0);
      ASSERT_TRUE(std::holds_alternative<Failure>(result)) << tensor;
      EXPECT_THAT(std::get<Failure>(result).message, HasSubstr(output));
      EXPECT_FALSE(std::get<Failure>(result).of_input);
    }
  }
}

// The way of a GPU, on the CPU: a pass of fixed shapes, which passes the trial at load.
TEST_F(MaskRcnnTest, APassWholeOnTheDeviceAnswersAsTheHost) {
  for (const Options& options :
       {NarrowMaskRcnn(), NarrowMaskRcnn({{"exact", "true"}, {"buckets", "96x96"}})}) {
    const TensorMap tensors = MaskRcnnTensors(kR50, options);
    const auto packed = Make(kR50, options, tensors);
    ::testing::internal::CaptureStderr();
    const auto whole = Make(kR50, options, tensors, kWhole);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("the host chooses the boxes")));
    // The second batch is a replay with other sizes. Without `exact` there is no padding, whose equal logits
    // the host breaks otherwise.
    const Size part = options.contains("exact") ? Size{50, 70} : Size{96, 96};
    for (const Size scaled : {Size{96, 96}, part}) {
      const Batch batch = BatchOf({{{200, 300}, scaled, {96, 96}}, {part, part, {96, 96}}});
      const auto expected = packed->Run(batch);
      const auto got = whole->Run(batch);
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_FALSE(Items(expected[i]).empty());
        // The packed convolutions round otherwise, which decides between boxes that are nearly as good.
        EXPECT_GT(Agreement(got[i], expected[i], 1e-3), 0.9);
      }
    }
  }
}

// A network that is sure of nothing in noise.
TEST_F(MaskRcnnTest, TheTrialComparesBoxesOfAnyScore) {
  const Options options = NarrowMaskRcnn({{"score_threshold", "1"}});
  TensorMap tensors = MaskRcnnTensors(kR50, options);
  const auto log_of_load = [&] {
    ::testing::internal::CaptureStderr();
    Make(kR50, options, tensors, kWhole);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(log_of_load(), Not(HasSubstr("the host chooses the boxes")));
  // All proposals are moved out of the picture, so that there is nothing to compare.
  tensors["rpn.head.bbox_pred.bias"].fill_(-100);
  EXPECT_THAT(log_of_load(), HasSubstr("no box was found in pictures of noise"));
}

TEST_F(MaskRcnnTest, APassWholeOnTheDeviceLeavesWhatItCannotFindToTheHost) {
  // Nearly all of the 11,000 boxes overlap another one, so that about 250 of the best 4,096 are left, far
  // less than are asked for and than the host finds.
  const Options options = NarrowMaskRcnn({{"score_threshold", "0"},
                                          {"nms_threshold", "0"},
                                          {"proposals", "1000"},
                                          {"classes", "12"},
                                          {"detections", "450"}});
  const TensorMap tensors = MaskRcnnTensors(kR50, options);
  const Batch batch = BatchOf({{{128, 192}, {128, 192}, {128, 192}}});
  const TaskResult expected = Make(kR50, options, tensors)->Run(batch).at(0);
  ASSERT_GT(Items(expected).size(), 400U);
  const TaskResult got = Make(kR50, options, tensors, kWhole)->Run(batch).at(0);
  EXPECT_GT(Agreement(got, expected, 1e-2), 0.8);
  EXPECT_NEAR(static_cast<double>(Items(got).size()), static_cast<double>(Items(expected).size()),
              0.05 * static_cast<double>(Items(expected).size()));
}

TEST_F(MaskRcnnTest, APassWholeOnTheDeviceFailsForThePictureThatIsNotFinite) {
  ExpectThatItFailsAlone(*Make(kR50, NarrowMaskRcnn(), MaskRcnnTensors(kR50, NarrowMaskRcnn()), kWhole));
}

TEST_F(MaskRcnnTest, EveryOptionOfAttentionCounts) {
  const Batch batch = BatchOf({{{96, 128}, {90, 120}, {96, 128}}});
  const TensorMap tensors = MaskRcnnTensors(kR50, NarrowMaskRcnn());
  const TaskResult expected = Make(kR50, NarrowMaskRcnn(), tensors)->Run(batch).at(0);
  for (const Options& options :
       {NarrowMaskRcnn({{"normalization", "scaling"}}), NarrowMaskRcnn({{"heads", "4"}})}) {
    EXPECT_GT(Difference(Make(kR50, options, tensors)->Run(batch).at(0), expected), 1e-5);
  }
}

TEST_F(MaskRcnnTest, NotesTheAttentionThatTheWeightsLack) {
  TensorMap tensors = MaskRcnnTensors(kR50, NarrowMaskRcnn());
  std::erase_if(tensors, [](const auto& entry) {
    return entry.first.starts_with("backbone.attention.res4.") ||
           entry.first.starts_with("backbone.attention.fpn2.");
  });
  const auto model = Make(kR50, NarrowMaskRcnn(), tensors);
  ASSERT_EQ(model->description().notes.size(), 1U);
  EXPECT_EQ(model->description().notes[0],
            "the weights have no tensors for backbone.attention.res4, backbone.attention.fpn2: attention is "
            "the identity there");
}

TEST_F(MaskRcnnTest, AbsentAttentionIsTheIdentity) {
  const Options none = NarrowMaskRcnn({{"attention", "none"}});
  const TensorMap tensors = MaskRcnnTensors(kR50, none);
  const Batch batch = BatchOf({{{96, 128}, {90, 120}, {96, 128}}});
  const auto plain = Make(kR50, none, tensors);
  const auto attentive = Make(kR50, NarrowMaskRcnn(), tensors);
  EXPECT_TRUE(plain->description().notes.empty());
  EXPECT_EQ(attentive->description().notes.size(), 1U);
  ExpectSameBits(attentive->Run(batch).at(0), plain->Run(batch).at(0));
}

TEST_F(MaskRcnnTest, ResnextRuns) {
  const Options options = NarrowMaskRcnn({{"blocks", "1,1,1,1"}});
  const auto model = Make("ea_mask_rcnn_x101", options, MaskRcnnTensors("ea_mask_rcnn_x101", options));
  EXPECT_EQ(model->description().architecture, "ea_mask_rcnn_x101");
  EXPECT_FALSE(Items(model->Run(BatchOf({{{64, 96}, {64, 96}, {64, 96}}})).at(0)).empty());
}

TEST_F(MaskRcnnTest, TellsTheOtherFormOfThePyramid) {
  const Options torchvision = NarrowMaskRcnn({{"fpn", "torchvision"}});
  const Options paper = NarrowMaskRcnn({{"fpn", "paper"}});
  EXPECT_THAT(Error(paper, MaskRcnnTensors(kR50, torchvision)),
              AllOf(HasSubstr(path_), HasSubstr("conv1"), HasSubstr("set the option fpn to torchvision")));
  EXPECT_THAT(Error(torchvision, MaskRcnnTensors(kR50, paper)), HasSubstr("set the option fpn to paper"));
  TensorMap damaged = MaskRcnnTensors(kR50, paper);
  damaged.erase("rpn.head.cls_logits.bias");
  EXPECT_THAT(Error(paper, damaged),
              AllOf(HasSubstr("rpn.head.cls_logits.bias"), Not(HasSubstr("option fpn"))));
}

TEST_F(MaskRcnnTest, ReadsTheNamesThatTorchvisionPublished) {
  const Options options = NarrowMaskRcnn({{"fpn", "torchvision"}, {"attention", "none"}});
  const TensorMap present = MaskRcnnTensors(kR50, options);
  TensorMap old;
  const auto shorten = [](std::string name, const std::string& from, const std::string& to) {
    if (const size_t at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
    return name;
  };
  for (const auto& [name, tensor] : present) {
    std::string before = shorten(name, "rpn.head.conv.0.0.", "rpn.head.conv.");
    for (int i = 0; i < 4; ++i) {
      const std::string number = std::to_string(i);
      before = shorten(before, "inner_blocks." + number + ".0.", "inner_blocks." + number + ".");
      before = shorten(before, "layer_blocks." + number + ".0.", "layer_blocks." + number + ".");
      before =
          shorten(before, "mask_head." + number + ".0.", "mask_head.mask_fcn" + std::to_string(i + 1) + ".");
    }
    EXPECT_EQ(PresentName(before), name);
    EXPECT_EQ(PresentName(name), name);
    old[before] = tensor;
  }
  EXPECT_TRUE(old.contains("roi_heads.mask_head.mask_fcn4.bias"));
  EXPECT_TRUE(old.contains("backbone.fpn.inner_blocks.3.weight"));
  const Batch batch = BatchOf({{{64, 96}, {64, 96}, {64, 96}}});
  const TaskResult expected = Make(kR50, options, present)->Run(batch).at(0);
  ExpectSameBits(Make(kR50, options, old)->Run(batch).at(0), expected);
}

TEST(PresentName, LeavesOthersAlone) {
  for (const char* name : {"roi_heads.mask_head.mask_fcn5.weight", "roi_heads.mask_head.mask_fcn0.weight",
                           "backbone.fpn.inner_blocks.4.weight", "backbone.fpn.inner_blocks.1.gamma",
                           "rpn.head.conv.gamma", "backbone.body.conv1.weight"}) {
    EXPECT_EQ(PresentName(name), name);
  }
}

TEST_F(MaskRcnnTest, RefusesOtherBatches) {
  const auto model = Make(NarrowMaskRcnn());
  const Placement placement{{64, 96}, {64, 96}, {64, 96}};
  EXPECT_THROW(model->Run({at::randn({1, 1, 64, 96}), {placement}}), c10::Error);
  EXPECT_THROW(model->Run({at::randn({1, 3, 64, 64}), {placement}}), c10::Error);
  EXPECT_THROW(model->Run({at::randn({2, 3, 64, 96}), {placement}}), c10::Error);
}

}  // namespace
}  // namespace saccade::models
