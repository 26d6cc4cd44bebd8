#include "server/protocols/vision/results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "models/tasks/mask.h"
#include "server/encode/disparity.h"
#include "server/encode/label_map.h"
#include "server/encode/mask.h"
#include "server/pictures/png.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

models::Description Model(models::Task task, std::vector<std::string> labels) {
  models::Description model;
  model.task = task;
  model.classes = static_cast<int64_t>(labels.size());
  model.labels = std::move(labels);
  return model;
}

absl::Status Set(const models::TaskResult& result, const models::Description& model,
                 const v1::PredictRequest& request, v1::PredictResponse& message, const SentItem& sent = {}) {
  Response response;
  response.description = &model;
  response.results = {result};
  response.sent = {sent};
  return SetResult(response, request, &message);
}

v1::PredictResponse Answer(const models::TaskResult& result, const models::Description& model,
                           const v1::PredictRequest& request, const SentItem& sent = {}) {
  v1::PredictResponse message;
  const absl::Status status = Set(result, model, request, message, sent);
  EXPECT_TRUE(status.ok()) << status;
  return message;
}

TEST(VisionResultsTest, TheLikeliestClassesWithTheirNames) {
  const auto model = Model(models::Task::kClassification, {"circle", "square", "star"});
  const models::Classification result{.logits = {0, 2, 1}};
  v1::PredictRequest request;
  EXPECT_EQ(Answer(result, model, request).classification().classes_size(), 3);
  request.mutable_classification()->set_top_k(2);
  const auto classes = Answer(result, model, request).classification().classes();
  ASSERT_EQ(classes.size(), 2);
  EXPECT_EQ(classes[0].label(), "square");
  EXPECT_EQ(classes[0].index(), 1);
  EXPECT_NEAR(classes[0].probability(), 0.66524, 1e-5);
  EXPECT_EQ(classes[1].label(), "star");
}

TEST(VisionResultsTest, ClassesThatAreLikelyEnough) {
  const auto model = Model(models::Task::kClassification, {"circle", "square", "star"});
  const models::Classification result{.logits = {0, 2, 1}};
  v1::PredictRequest request;
  request.mutable_classification()->set_probability_threshold(0.2F);
  EXPECT_EQ(Answer(result, model, request).classification().classes_size(), 2);
  request.mutable_classification()->set_probability_threshold(1);
  EXPECT_EQ(Answer(result, model, request).classification().classes_size(), 0);
}

// In a picture of 8 x 6 pixels, with masks of 2 x 2.
models::Detections ThreeThings() {
  const std::vector<float> mask = {0.9F, 0.9F, 0.3F, 0.3F};
  return {
      .items = {{.x_min = 1, .y_min = 1, .x_max = 5, .y_max = 4, .score = 0.9F, .label = 2, .mask = mask},
                {.x_min = 0, .y_min = 0, .x_max = 8, .y_max = 6, .score = 0.6F, .label = 1, .mask = mask},
                {.x_min = 2, .y_min = 2, .x_max = 3, .y_max = 3, .score = 0.5F, .label = 2, .mask = mask}},
      .mask_side = 2,
      .height = 6,
      .width = 8};
}

std::vector<float> ScoresOf(const v1::PredictResponse& message) {
  std::vector<float> scores;
  for (const v1::Detection& detection : message.detections().detections())
    scores.push_back(detection.score());
  return scores;
}

TEST(VisionResultsTest, DetectionsCarryBoxNameAndMask) {
  const auto model = Model(models::Task::kDetection, {"background", "cat", "dog"});
  const models::Detections result = ThreeThings();
  const v1::PredictResponse message = Answer(result, model, {});
  ASSERT_EQ(message.detections().detections_size(), 3);
  const v1::Detection& first = message.detections().detections(0);
  EXPECT_EQ(first.label(), "dog");
  EXPECT_EQ(first.class_index(), 2);
  EXPECT_EQ(first.box().x_min(), 1);
  EXPECT_EQ(first.box().y_min(), 1);
  EXPECT_EQ(first.box().x_max(), 5);
  EXPECT_EQ(first.box().y_max(), 4);
  const auto counts = models::EncodeRle(models::PasteMask(result.items[0], 2, 6, 8), 6, 8, 0.5F);
  EXPECT_EQ(first.mask().height(), 6);
  EXPECT_EQ(first.mask().width(), 8);
  EXPECT_EQ(first.mask().counts(), models::CocoText(counts));
  EXPECT_EQ(first.mask().area(), models::AreaOf(counts));
  EXPECT_GT(first.mask().area(), 0);
}

TEST(VisionResultsTest, DetectionsAreFilteredAsAsked) {
  const auto model = Model(models::Task::kDetection, {"background", "cat", "dog"});
  v1::PredictRequest request;
  v1::DetectionOptions* options = request.mutable_detection();
  options->set_score_threshold(0.6F);
  EXPECT_THAT(ScoresOf(Answer(ThreeThings(), model, request)), ElementsAre(0.9F, 0.6F));
  options->clear_score_threshold();
  options->add_classes(2);
  EXPECT_THAT(ScoresOf(Answer(ThreeThings(), model, request)), ElementsAre(0.9F, 0.5F));
  options->set_top_k(1);
  EXPECT_THAT(ScoresOf(Answer(ThreeThings(), model, request)), ElementsAre(0.9F));
  options->set_score_threshold(1);
  const v1::PredictResponse none = Answer(ThreeThings(), model, request);
  EXPECT_TRUE(none.has_detections());
  EXPECT_EQ(none.detections().detections_size(), 0);
}

TEST(VisionResultsTest, MasksAreDrawnAtTheThresholdOrNotAtAll) {
  const auto model = Model(models::Task::kDetection, {});
  v1::PredictRequest request;
  const int64_t usual = Answer(ThreeThings(), model, request).detections().detections(1).mask().area();
  request.mutable_detection()->set_mask_threshold(0.2F);
  const v1::PredictResponse lower = Answer(ThreeThings(), model, request);
  EXPECT_GT(lower.detections().detections(1).mask().area(), usual);
  EXPECT_EQ(lower.detections().detections(1).label(), "");
  request.mutable_detection()->set_masks(v1::DetectionOptions::NONE);
  EXPECT_FALSE(Answer(ThreeThings(), model, request).detections().detections(0).has_mask());
  models::Detections boxes = ThreeThings();
  for (models::Detection& item : boxes.items) item.mask.clear();
  EXPECT_FALSE(Answer(boxes, model, {}).detections().detections(0).has_mask());
}

TEST(VisionResultsTest, MemoryForMasksIsTakenBeforeTheyAreDrawn) {
  const auto model = Model(models::Task::kDetection, {"background", "cat", "dog"});
  std::vector<int64_t> taken;
  Response response;
  response.description = &model;
  response.results = {ThreeThings()};
  response.sent = {SentItem{}};
  response.take_memory = [&](int64_t bytes) {
    taken.push_back(bytes);
    return taken.size() < 3 ? absl::OkStatus() : absl::ResourceExhaustedError("full");
  };
  v1::PredictResponse message;
  EXPECT_EQ(SetResult(response, {}, &message), absl::ResourceExhaustedError("full"));
  // Five bytes for each pixel of a box and its border, at most for each of the picture.
  EXPECT_THAT(taken, ElementsAre(5 * 8 * 6, 5 * 8 * 6, 5 * 4 * 4));
  EXPECT_FALSE(message.detections().detections(2).has_mask());
}

TEST(VisionResultsTest, MasksOfAnAnswerOfSeveralResponsesAreBoundedTogether) {
  const auto model = Model(models::Task::kDetection, {"background", "cat", "dog"});
  // What other responses have drawn, with room for the first two masks.
  std::atomic<int64_t> drawn{(int64_t{1} << 30) - 2 * 8 * 6};
  Response response;
  response.description = &model;
  response.results = {ThreeThings()};
  response.sent = {SentItem{}};
  response.mask_pixels = &drawn;
  v1::PredictResponse message;
  const absl::Status refused = SetResult(response, {}, &message);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("detection.masks: would have more than 1073741824 pixels together"));
  EXPECT_TRUE(message.detections().detections(1).has_mask());
  EXPECT_FALSE(message.detections().detections(2).has_mask());
  EXPECT_EQ(drawn, int64_t{1} << 30) << "the mask that was refused does not count";
}

TEST(VisionResultsTest, AMaskHasTheFormThatIsAskedFor) {
  const auto model = Model(models::Task::kDetection, {});
  v1::PredictRequest request;
  request.mutable_detection()->set_mask_threshold(0.4F);
  const SentItem part{.width = 20, .height = 10, .region = Region{.x = 7, .y = 2, .width = 8, .height = 6}};
  const v1::Detection rle = Answer(ThreeThings(), model, request, part).detections().detections(0);
  EXPECT_EQ(rle.outline_case(), v1::Detection::kMask);

  request.mutable_detection()->set_masks(v1::DetectionOptions::PNG);
  const v1::Detection picture = Answer(ThreeThings(), model, request, part).detections().detections(0);
  ASSERT_TRUE(picture.has_mask_picture());
  models::MaskRegion region = models::PasteMask(ThreeThings().items[0], 2, 6, 8);
  region.x += 7;
  region.y += 2;
  const MaskBits bits = BitsOf(region, 0.4F);
  EXPECT_EQ(picture.mask_picture().x(), bits.x);
  EXPECT_EQ(picture.mask_picture().y(), bits.y);
  EXPECT_EQ(picture.mask_picture().width(), bits.width);
  EXPECT_EQ(picture.mask_picture().height(), bits.height);
  EXPECT_EQ(picture.mask_picture().png(), *GreyPng(bits.values.data(), bits.height, bits.width));
  EXPECT_EQ(picture.mask_picture().area(), rle.mask().area());
  EXPECT_GT(rle.mask().area(), 0);

  request.mutable_detection()->set_masks(v1::DetectionOptions::POLYGONS);
  const v1::Detection around = Answer(ThreeThings(), model, request, part).detections().detections(0);
  ASSERT_TRUE(around.has_mask_polygons());
  EXPECT_EQ(around.mask_polygons().area(), rle.mask().area());
  ASSERT_EQ(around.mask_polygons().polygons_size(), 1);
  const auto& points = around.mask_polygons().polygons(0).points();
  EXPECT_FALSE(around.mask_polygons().polygons(0).hole());
  const std::vector<int32_t> expected = (*PolygonsOf(bits)).at(0).points;
  EXPECT_TRUE(std::equal(points.begin(), points.end(), expected.begin(), expected.end()));
}

TEST(VisionResultsTest, AMaskWithoutPixelsHasNoPictureAndNoPolygons) {
  const auto model = Model(models::Task::kDetection, {});
  v1::PredictRequest request;
  request.mutable_detection()->set_mask_threshold(1);
  request.mutable_detection()->set_masks(v1::DetectionOptions::PNG);
  const v1::Detection picture = Answer(ThreeThings(), model, request).detections().detections(0);
  EXPECT_TRUE(picture.has_mask_picture());
  EXPECT_EQ(picture.mask_picture().width(), 0);
  EXPECT_EQ(picture.mask_picture().png(), "");
  request.mutable_detection()->set_masks(v1::DetectionOptions::POLYGONS);
  const v1::Detection around = Answer(ThreeThings(), model, request).detections().detections(0);
  EXPECT_TRUE(around.has_mask_polygons());
  EXPECT_EQ(around.mask_polygons().polygons_size(), 0);
}

TEST(VisionResultsTest, SegmentationHasItsMapAndTheAreasThatThereAre) {
  const auto model = Model(models::Task::kSegmentation, {"background", "car", "bus", "road"});
  const models::Segmentation result{
      .height = 2, .width = 4, .labels = {0, 0, 2, 2, 3, 3, 3, 3}, .areas = {2, 0, 2, 4}};
  v1::PredictRequest request;
  const v1::PredictResponse message = Answer(result, model, request);
  EXPECT_EQ(message.segmentation().width(), 4);
  EXPECT_EQ(message.segmentation().height(), 2);
  EXPECT_EQ(message.segmentation().format(), v1::SegmentationOptions::PNG);
  EXPECT_EQ(message.segmentation().label_map(), *LabelMapPng(result));
  ASSERT_EQ(message.segmentation().areas_size(), 3);
  EXPECT_EQ(message.segmentation().areas(0).label(), "road");
  EXPECT_EQ(message.segmentation().areas(0).fraction(), 0.5F);
  EXPECT_EQ(message.segmentation().areas(1).label(), "background");
  EXPECT_EQ(message.segmentation().areas(2).class_index(), 2);
  EXPECT_EQ(message.segmentation().areas(2).pixels(), 2);
  request.mutable_segmentation()->set_format(v1::SegmentationOptions::RAW);
  EXPECT_EQ(Answer(result, model, request).segmentation().label_map(), *LabelMapBytes(result));
  request.mutable_segmentation()->set_format(v1::SegmentationOptions::NONE);
  EXPECT_EQ(Answer(result, model, request).segmentation().label_map(), "");
  EXPECT_EQ(Answer(result, model, request).segmentation().areas_size(), 3);
}

TEST(VisionResultsTest, AMapAsLargeAsTheNetworkSawThePicture) {
  const auto model = Model(models::Task::kSegmentation, {"background", "car"});
  const models::Segmentation result{
      .height = 2, .width = 4, .labels = {0, 0, 1, 1, 0, 0, 1, 1}, .areas = {4, 4}};
  v1::PredictRequest request;
  request.mutable_segmentation()->mutable_size()->set_network(true);
  request.mutable_segmentation()->set_format(v1::SegmentationOptions::RAW);
  const SentItem sent{.width = 4, .height = 2, .scaled = {1, 2}};
  const v1::PredictResponse message = Answer(result, model, request, sent);
  EXPECT_EQ(message.segmentation().width(), 2);
  EXPECT_EQ(message.segmentation().height(), 1);
  EXPECT_EQ(message.segmentation().label_map(), std::string("\0\x01", 2));
  EXPECT_EQ(message.segmentation().areas(0).pixels(), 4) << "of the full size";
}

// The right half of a picture of 4 x 2 pixels was seen.
TEST(VisionResultsTest, WhatARegionShowsLiesInItsPlaceOnTheWholePicture) {
  const SentItem sent{
      .width = 4, .height = 2, .scaled = {4, 4}, .region = Region{.x = 2, .y = 0, .width = 2, .height = 2}};
  const auto segmenter = Model(models::Task::kSegmentation, {"background", "car"});
  const models::Segmentation labels{.height = 2, .width = 2, .labels = {0, 1, 1, 0}, .areas = {2, 2}};
  v1::PredictRequest request;
  request.mutable_segmentation()->set_format(v1::SegmentationOptions::RAW);
  const v1::Segmentation map = Answer(labels, segmenter, request, sent).segmentation();
  EXPECT_EQ(map.width(), 4);
  EXPECT_EQ(map.height(), 2);
  EXPECT_EQ(map.label_map(), std::string("\xFF\xFF\0\1\xFF\xFF\1\0", 8));
  EXPECT_EQ(map.areas(0).fraction(), 0.5F) << "of what was seen";
  request.mutable_segmentation()->set_format(v1::SegmentationOptions::NONE);
  EXPECT_EQ(Answer(labels, segmenter, request, sent).segmentation().width(), 4);
  request.mutable_segmentation()->set_format(v1::SegmentationOptions::RAW);
  request.mutable_segmentation()->mutable_size()->set_width(2);
  request.mutable_segmentation()->mutable_size()->set_height(1);
  EXPECT_EQ(Answer(labels, segmenter, request, sent).segmentation().label_map(), std::string("\xFF\0", 2))
      << "the pixels that lie where the centres of the smaller map's do";

  const auto stereo = Model(models::Task::kStereo, {});
  const models::Disparity disparity{.height = 2, .width = 2, .values = {1, 2, 3, 4}};
  request.mutable_stereo_options()->set_format(v1::StereoOptions::FLOAT);
  const v1::Disparity whole = Answer(disparity, stereo, request, sent).disparity();
  EXPECT_EQ(whole.width(), 4);
  EXPECT_EQ(whole.map().size(), 4u * 2 * sizeof(float));
  EXPECT_EQ(whole.max(), 4);
}

TEST(VisionResultsTest, DisparityHasItsMapAndItsRange) {
  const auto model = Model(models::Task::kStereo, {});
  const models::Disparity result{.height = 1, .width = 4, .values = {1, 7, 2, 3}};
  v1::PredictRequest request;
  const v1::PredictResponse message = Answer(result, model, request);
  EXPECT_EQ(message.disparity().width(), 4);
  EXPECT_EQ(message.disparity().height(), 1);
  EXPECT_EQ(message.disparity().format(), v1::StereoOptions::PNG_16);
  EXPECT_EQ(message.disparity().map(), *DisparityPng(result));
  EXPECT_EQ(message.disparity().min(), 1);
  EXPECT_EQ(message.disparity().max(), 7);
  EXPECT_EQ(message.disparity().mean(), 3.25F);
  request.mutable_stereo_options()->set_format(v1::StereoOptions::FLOAT);
  EXPECT_EQ(Answer(result, model, request).disparity().map(), *DisparityFloats(result));
}

TEST(VisionResultsTest, ActionsAreInSecondsAndFilteredAsAsked) {
  const auto model = Model(models::Task::kActions, {"background", "dive", "throw"});
  const models::Actions result{.items = {{.start = 10, .end = 35, .score = 0.9F, .label = 2},
                                         {.start = 0, .end = 5, .score = 0.7F, .label = 1},
                                         {.start = 40, .end = 50, .score = 0.2F, .label = 2}},
                               .frames = 64};
  const SentItem sent{.width = 4, .height = 4, .frames_per_second = 12.5};
  v1::PredictRequest request;
  const v1::Actions all = Answer(result, model, request, sent).actions();
  ASSERT_EQ(all.actions_size(), 3);
  EXPECT_EQ(all.frames(), 64);
  EXPECT_EQ(all.frames_per_second(), 12.5);
  EXPECT_EQ(all.actions(0).label(), "throw");
  EXPECT_DOUBLE_EQ(all.actions(0).start_seconds(), 0.8);
  EXPECT_DOUBLE_EQ(all.actions(0).end_seconds(), 2.8);
  EXPECT_EQ(all.actions(0).start_frame(), 10);
  EXPECT_EQ(all.actions(0).end_frame(), 35);
  request.mutable_actions()->set_score_threshold(0.5F);
  EXPECT_EQ(Answer(result, model, request, sent).actions().actions_size(), 2);
  request.mutable_actions()->add_classes(1);
  EXPECT_EQ(Answer(result, model, request, sent).actions().actions(0).score(), 0.7F);
  request.mutable_actions()->clear_classes();
  request.mutable_actions()->set_top_k(1);
  EXPECT_EQ(Answer(result, model, request, sent).actions().actions_size(), 1);
}

TEST(VisionResultsTest, ARestorationHasTheTypeThatWasSentOrIsAskedFor) {
  const auto model = Model(models::Task::kRestoration, {});
  const models::Restoration result{.depth = 1, .height = 2, .width = 2, .values = {1.4F, 2.6F, 300, -1}};
  v1::PredictRequest request;
  const v1::Restoration bytes = Answer(result, model, request, {.voxels = VoxelType::kUint8}).restoration();
  EXPECT_EQ(bytes.shape().type(), v1::VolumeShape::UINT8);
  EXPECT_EQ(bytes.shape().depth(), 1);
  EXPECT_EQ(bytes.shape().height(), 2);
  EXPECT_EQ(bytes.shape().width(), 2);
  EXPECT_EQ(bytes.voxels(), std::string("\x01\x03\xFF\x00", 4));
  EXPECT_EQ(bytes.min(), -1);
  EXPECT_EQ(bytes.max(), 300);
  request.mutable_restoration()->set_type(v1::VolumeShape::FLOAT32);
  EXPECT_EQ(Answer(result, model, request, {.voxels = VoxelType::kUint8}).restoration().voxels().size(), 16u);
}

TEST(VisionResultsTest, AMapThatCannotBeEncodedIsAnError) {
  v1::PredictResponse message;
  const auto model = Model(models::Task::kSegmentation, {});
  EXPECT_EQ(Set(models::Segmentation{}, model, {}, message).code(), absl::StatusCode::kInternal);
}

// Makes a map of 1,024 x 1,024 pixels from one pixel, and ends the call at the question `last`. Returns how
// many were asked.
int QuestionsOfMap(const models::TaskResult& result, const models::Description& model,
                   const v1::PredictRequest& request, int last) {
  const absl::Status end = absl::CancelledError("the client has gone");
  int asked = 0;
  Response response;
  response.description = &model;
  response.results = {result};
  response.sent = {SentItem{.width = 1, .height = 1}};
  response.still_wanted = [&] { return ++asked == last ? end : absl::OkStatus(); };
  v1::PredictResponse message;
  const absl::Status made = SetResult(response, request, &message);
  EXPECT_EQ(made, asked < last ? absl::OkStatus() : end);
  return asked;
}

TEST(VisionResultsTest, ALargeMapEndsWithItsCall) {
  // The questions while the map is scaled; as many follow for each step of its encoding.
  const int parts = 1'024 * 1'024 / (1 << 16);
  const auto segmenter = Model(models::Task::kSegmentation, {"background"});
  const models::Segmentation labels{.height = 1, .width = 1, .labels = {0}, .areas = {1}};
  const auto stereo = Model(models::Task::kStereo, {});
  const models::Disparity disparity{.height = 1, .width = 1, .values = {1}};
  v1::PredictRequest label_map;
  label_map.mutable_segmentation()->mutable_size()->set_width(1'024);
  label_map.mutable_segmentation()->mutable_size()->set_height(1'024);
  v1::PredictRequest disparity_map;
  *disparity_map.mutable_stereo_options()->mutable_size() = label_map.segmentation().size();
  for (const int last : {1, 2, parts, parts + 1, 2 * parts}) {
    EXPECT_EQ(QuestionsOfMap(labels, segmenter, label_map, last), last);
    EXPECT_EQ(QuestionsOfMap(disparity, stereo, disparity_map, last), last);
  }
  const int none = 1'000;
  EXPECT_EQ(QuestionsOfMap(labels, segmenter, label_map, none), 2 * parts);
  EXPECT_EQ(QuestionsOfMap(disparity, stereo, disparity_map, none), 3 * parts) << "scaled, rounded, written";
  label_map.mutable_segmentation()->set_format(v1::SegmentationOptions::RAW);
  disparity_map.mutable_stereo_options()->set_format(v1::StereoOptions::FLOAT);
  EXPECT_EQ(QuestionsOfMap(labels, segmenter, label_map, none), 2 * parts);
  EXPECT_EQ(QuestionsOfMap(disparity, stereo, disparity_map, none), 2 * parts);
}

TEST(VisionResultsTest, TooLargeAnAnswerSaysWhatToAskForInstead) {
  const models::Disparity result{.height = 10, .width = 10, .values = std::vector<float>(100, 1)};
  v1::PredictRequest request;
  request.mutable_stereo_options()->set_format(v1::StereoOptions::FLOAT);
  const v1::PredictResponse message = Answer(result, Model(models::Task::kStereo, {}), request);
  const auto size = static_cast<int64_t>(message.ByteSizeLong());
  EXPECT_TRUE(CheckSize(message, size).ok());
  const absl::Status refused = CheckSize(message, size - 1);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--max-message-bytes"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("PNG_16"));
}

TEST(VisionResultsTest, EachTaskHasItsWayToASmallerAnswer) {
  const auto hint = [](auto fill) {
    v1::PredictResponse message;
    fill(message);
    return std::string(CheckSize(message, 1).message());
  };
  EXPECT_THAT(hint([](auto& m) { m.mutable_classification()->add_classes()->set_label("a"); }),
              HasSubstr("classification.top_k"));
  EXPECT_THAT(hint([](auto& m) { m.mutable_detections()->add_detections()->set_label("a"); }),
              HasSubstr("detection.masks NONE"));
  EXPECT_THAT(hint([](auto& m) { m.mutable_segmentation()->set_label_map("abcd"); }),
              HasSubstr("segmentation.format PNG"));
  EXPECT_THAT(hint([](auto& m) { m.mutable_actions()->add_actions()->set_label("a"); }),
              HasSubstr("actions.top_k"));
  EXPECT_THAT(hint([](auto& m) { m.mutable_restoration()->set_voxels("abcd"); }), HasSubstr("call Restore"));
  EXPECT_THAT(hint([](auto& m) { m.set_model("a model"); }), HasSubstr("--max-message-bytes"));
  EXPECT_THAT(hint([](auto& m) {
                m.mutable_classification();
                m.mutable_explanation()->add_maps()->set_png("abcd");
              }),
              HasSubstr("explain.max_maps"))
      << "what takes most of it";
}

}  // namespace
}  // namespace saccade::server
