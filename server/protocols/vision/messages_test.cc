#include "server/protocols/vision/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <limits>

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

v1::PredictRequest Encoded() {
  v1::PredictRequest message;
  message.set_model("m");
  message.set_encoded("bytes");
  return message;
}

void ExpectInvalid(const v1::PredictRequest& message, std::string_view field, std::string_view hint) {
  const absl::Status status = FromMessage(message).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), StartsWith(std::string(field) + ":"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(hint)));
}

TEST(VisionMessagesTest, EncodedPicturePointsIntoTheMessage) {
  const v1::PredictRequest message = Encoded();
  const auto request = FromMessage(message);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->size(), 1);
  EXPECT_EQ(request->bytes(), 5);
  const auto& picture = std::get<std::vector<Picture>>(request->input).at(0);
  EXPECT_EQ(std::get<EncodedPicture>(picture).data.bytes.data(), message.encoded().data());
}

TEST(VisionMessagesTest, EveryFieldIsChecked) {
  ExpectInvalid(v1::PredictRequest(), "model", "ListModels");
  v1::PredictRequest message = Encoded();
  message.clear_input();
  ExpectInvalid(message, "input", "'encoded'");
  message = Encoded();
  message.set_version(-1);
  ExpectInvalid(message, "version", "-1");
  message = Encoded();
  message.set_model(std::string(1025, 'm'));
  ExpectInvalid(message, "model", "has 1025 bytes; at most 1024");
  message = Encoded();
  message.set_request_id(std::string(129, 'x'));
  ExpectInvalid(message, "request_id", "129");
  message = Encoded();
  message.set_priority(101);
  ExpectInvalid(message, "priority", "101");
  message.set_priority(-101);
  ExpectInvalid(message, "priority", "-101");
}

TEST(VisionMessagesTest, ARegionIsOfPicturesAndPairs) {
  v1::PredictRequest message = Encoded();
  EXPECT_FALSE(FromMessage(message)->region.has_value());
  v1::Region* region = message.mutable_region();
  ExpectInvalid(message, "region", "0 x 0 pixels");
  region->set_x(3);
  region->set_y(4);
  region->set_width(5);
  region->set_height(6);
  const auto request = FromMessage(message);
  ASSERT_TRUE(request.ok()) << request.status();
  ASSERT_TRUE(request->region.has_value());
  EXPECT_EQ(request->region->x, 3);
  EXPECT_EQ(request->region->y, 4);
  EXPECT_EQ(request->region->width, 5);
  EXPECT_EQ(request->region->height, 6);
  region->set_y(-1);
  ExpectInvalid(message, "region", "at least 0");
  region->set_y(0);
  message.mutable_clip()->set_video("video");
  ExpectInvalid(message, "region", "pictures and stereo pairs");
  message.mutable_volume()->set_tiff("tiff");
  ExpectInvalid(message, "region", "pictures and stereo pairs");
}

TEST(VisionMessagesTest, TilesAreOfASinglePicture) {
  v1::PredictRequest message = Encoded();
  EXPECT_FALSE(FromMessage(message)->tiles.has_value());
  v1::Tiles* tiles = message.mutable_tiles();
  ExpectInvalid(message, "tiles.size", "is 0");
  tiles->set_size(64);
  tiles->set_overlap(33);
  ExpectInvalid(message, "tiles.overlap", "expected 0 to 32");
  tiles->set_overlap(32);
  const auto request = FromMessage(message);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->tiles, (models::TileRules{.size = 64, .overlap = 32}));
  tiles->set_whole(true);
  ExpectInvalid(message, "tiles.whole", "together with a size");
  tiles->Clear();
  tiles->set_whole(true);
  EXPECT_EQ(FromMessage(message)->tiles, models::TileRules{});
  message.mutable_volume()->set_tiff("tiff");
  ExpectInvalid(message, "tiles", "expected a single picture");
}

TEST(VisionMessagesTest, AMapsSizeIsBounded) {
  v1::PredictRequest message = Encoded();
  v1::OutputSize* size = message.mutable_segmentation()->mutable_size();
  ExpectInvalid(message, "segmentation.size", "0 x 0");
  size->set_width(16'384);
  size->set_height(4'096);
  ASSERT_TRUE(FromMessage(message).ok());
  EXPECT_EQ(FromMessage(message)->map_bytes, int64_t{2} << 26) << "the map and its encoding";
  size->set_height(4'097);
  ExpectInvalid(message, "segmentation.size", "at most 67108864");
  message.mutable_stereo_options()->mutable_size()->set_width(1);
  ExpectInvalid(message, "stereo_options.size", "1 x 0");
  message.mutable_stereo_options()->mutable_size()->set_network(true);
  ExpectInvalid(message, "stereo_options.size", "one of them");
  message.mutable_stereo_options()->mutable_size()->set_width(0);
  EXPECT_TRUE(FromMessage(message).ok());
  message.mutable_region()->set_width(1);
  ExpectInvalid(message, "stereo_options.size", "seen only the region");
}

TEST(VisionMessagesTest, AMapsSizeIsTheNetworksOrAWidthAndAHeight) {
  v1::PredictRequest message = Encoded();
  message.mutable_segmentation()->mutable_size()->set_network(true);
  EXPECT_TRUE(FromMessage(message).ok());
  message.mutable_segmentation()->mutable_size()->set_height(3);
  ExpectInvalid(message, "segmentation.size", "is 0 x 3 and also the network's size; set only one of them");
  message.mutable_segmentation()->mutable_size()->set_network(false);
  message.mutable_segmentation()->mutable_size()->set_width(16'385);
  ExpectInvalid(message, "segmentation.size", "expected sides of 1 to 16384");
  message.mutable_segmentation()->mutable_size()->set_width(16'384);
  EXPECT_TRUE(FromMessage(message).ok());
  message.mutable_segmentation()->mutable_size()->set_height(16'384);
  ExpectInvalid(message, "segmentation.size", "at most 67108864 pixels");
}

TEST(VisionMessagesTest, EveryOptionIsChecked) {
  v1::PredictRequest message = Encoded();
  message.mutable_classification()->set_top_k(-1);
  ExpectInvalid(message, "classification.top_k", "-1");
  message.mutable_classification()->set_top_k(0);
  message.mutable_classification()->set_probability_threshold(-0.1F);
  ExpectInvalid(message, "classification.probability_threshold", "-0.1");
  v1::DetectionOptions* detection = message.mutable_detection();
  EXPECT_TRUE(FromMessage(message).ok());
  detection->set_score_threshold(1.5F);
  ExpectInvalid(message, "detection.score_threshold", "1.5");
  detection->set_score_threshold(std::numeric_limits<float>::quiet_NaN());
  ExpectInvalid(message, "detection.score_threshold", "nan");
  detection->set_score_threshold(1);
  detection->set_mask_threshold(-0.5F);
  ExpectInvalid(message, "detection.mask_threshold", "-0.5");
  detection->set_mask_threshold(0);
  detection->set_top_k(100'001);
  ExpectInvalid(message, "detection.top_k", "100001");
  detection->set_top_k(100'000);
  detection->set_masks(static_cast<v1::DetectionOptions::Masks>(7));
  ExpectInvalid(message, "detection.masks", "POLYGONS or NONE");
  detection->set_masks(v1::DetectionOptions::NONE);
  EXPECT_TRUE(FromMessage(message).ok());
  for (int i = 0; i < 10'001; ++i) detection->add_classes(1);
  ExpectInvalid(message, "detection.classes", "10001");
  message.mutable_segmentation()->set_format(static_cast<v1::SegmentationOptions::Format>(9));
  ExpectInvalid(message, "segmentation.format", "PNG");
  message.mutable_stereo_options()->set_format(static_cast<v1::StereoOptions::Format>(9));
  ExpectInvalid(message, "stereo_options.format", "PNG_16");
}

TEST(VisionMessagesTest, OptionsMustBeOfTheModelsTask) {
  v1::PredictRequest message = Encoded();
  models::Description model;
  model.task = models::Task::kDetection;
  model.classes = 91;
  EXPECT_TRUE(FromMessage(message)->accepts(model).ok());
  message.mutable_stereo_options();
  absl::Status refused = FromMessage(message)->accepts(model);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.message(),
            "stereo_options: model 'm' is for detection; omit these options, or set 'detection'");
  message.mutable_detection()->add_classes(90);
  EXPECT_TRUE(FromMessage(message)->accepts(model).ok());
  message.mutable_detection()->add_classes(91);
  refused = FromMessage(message)->accepts(model);
  EXPECT_EQ(refused.message(), "detection.classes: holds 91; model 'm' knows 0 to 90");
  message.mutable_detection()->set_classes(1, -1);
  refused = FromMessage(message)->accepts(model);
  EXPECT_EQ(refused.message(), "detection.classes: holds -1; model 'm' knows 0 to 90");
}

TEST(VisionMessagesTest, StereoIsTwoPicturesInEitherForm) {
  v1::PredictRequest message = Encoded();
  v1::StereoPair* pair = message.mutable_stereo();
  ExpectInvalid(message, "stereo.left", "set it to a picture");
  pair->mutable_left()->set_encoded("left");
  ExpectInvalid(message, "stereo.right", "set it to a picture");
  v1::RawPicture* raw = pair->mutable_right()->mutable_raw();
  raw->set_width(1);
  raw->set_height(1);
  ExpectInvalid(message, "stereo.right.raw.order", "RGB");
  raw->set_order(v1::RawPicture::RGB);
  ExpectInvalid(message, "stereo.right.raw.pixels", "holds 0 bytes");
  raw->set_pixels("rgb");
  const auto request = FromMessage(message);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->views, 2);
  EXPECT_EQ(request->size(), 1);
  EXPECT_EQ(request->bytes(), 7);
  const auto& pictures = std::get<std::vector<Picture>>(request->input);
  EXPECT_EQ(std::get<EncodedPicture>(pictures.at(0)).data.bytes, "left");
  EXPECT_EQ(std::get<RawPicture>(pictures.at(1)).data.bytes.data(), raw->pixels().data());
}

TEST(VisionMessagesTest, AClipIsAVideoOrFrames) {
  v1::PredictRequest message = Encoded();
  v1::Clip* clip = message.mutable_clip();
  ExpectInvalid(message, "clip", "'video'");
  clip->set_video("file");
  auto request = FromMessage(message);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->medium, models::Medium::kClip);
  EXPECT_EQ(request->views, 1);
  EXPECT_EQ(request->input_name, "clip");
  v1::Frames* frames = clip->mutable_frames();
  ExpectInvalid(message, "clip.frames.pictures", "empty");
  frames->add_pictures()->set_encoded("one");
  frames->add_pictures();
  ExpectInvalid(message, "clip.frames.pictures[1]", "set it to a picture");
  frames->mutable_pictures(1)->set_encoded("three");
  for (const double rate : {-1.0, 1001.0, std::nan("")}) {
    frames->set_frames_per_second(rate);
    ExpectInvalid(message, "clip.frames.frames_per_second", "0 to 1000");
  }
  frames->set_frames_per_second(12.5);
  request = FromMessage(message);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->size(), 1);
  EXPECT_EQ(request->views, 2);
  EXPECT_EQ(request->bytes(), 8);
  EXPECT_EQ(request->frames_per_second, 12.5);
}

TEST(VisionMessagesTest, AVolumeIsATiffOrVoxelsThatFillItsShape) {
  v1::PredictRequest message = Encoded();
  v1::Volume* volume = message.mutable_volume();
  ExpectInvalid(message, "volume", "'tiff'");
  volume->set_tiff("II*");
  ASSERT_TRUE(FromMessage(message).ok());
  EXPECT_EQ(FromMessage(message)->medium, models::Medium::kVolume);
  v1::RawVolume* raw = volume->mutable_raw();
  v1::VolumeShape* shape = raw->mutable_shape();
  shape->set_depth(2);
  shape->set_height(3);
  ExpectInvalid(message, "volume.raw.shape", "2 x 3 x 0");
  shape->set_width(65536);
  ExpectInvalid(message, "volume.raw.shape", "1 to 65535");
  shape->set_width(4);
  ExpectInvalid(message, "volume.raw.shape.type", "UINT16");
  shape->set_type(v1::VolumeShape::UINT16);
  raw->set_voxels(std::string(47, '\0'));
  ExpectInvalid(message, "volume.raw.voxels", "are 48");
  raw->set_voxels(std::string(48, '\0'));
  const auto request = FromMessage(message);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->bytes(), 48);
  const auto& read = std::get<RawVolume>(std::get<std::vector<Picture>>(request->input).at(0));
  EXPECT_EQ(read.depth, 2);
  EXPECT_EQ(read.height, 3);
  EXPECT_EQ(read.width, 4);
  EXPECT_EQ(read.type, VoxelType::kUint16);
  EXPECT_EQ(read.data.bytes.data(), raw->voxels().data());
  message.mutable_restoration()->set_type(static_cast<v1::VolumeShape::Type>(9));
  ExpectInvalid(message, "restoration.type", "expected UINT8");
}

TEST(VisionMessagesTest, RawPixelsMustFillTheirSize) {
  v1::PredictRequest message = Encoded();
  v1::RawPicture* raw = message.mutable_raw();
  raw->set_width(2);
  raw->set_height(3);
  raw->set_pixels(std::string(18, '\0'));
  ExpectInvalid(message, "raw.order", "RGB");
  raw->set_order(v1::RawPicture::BGR);
  ASSERT_TRUE(FromMessage(message).ok());
  raw->set_pixels(std::string(17, '\0'));
  ExpectInvalid(message, "raw.pixels", "18");
  raw->set_width(0);
  ExpectInvalid(message, "raw", "0 x 3");
  raw->set_width(INT32_MAX);
  raw->set_height(INT32_MAX);
  ExpectInvalid(message, "raw.pixels", "bytes");
}

TEST(VisionMessagesTest, AnswerSaysWhoGaveItAndWhereTheTimeWent) {
  models::Description model;
  model.classes = 3;
  Response response;
  response.model = "m";
  response.version = 7;
  response.description = &model;
  response.results = {models::Classification{.logits = {0.0f, 2.0f, 1.0f}}};
  response.sent = {{.width = 640, .height = 480}};
  response.timings.encode = absl::Milliseconds(3);
  response.timings.total = absl::Milliseconds(1500);
  response.batch_size = 4;
  v1::PredictRequest request = Encoded();
  request.set_request_id("r");
  v1::PredictResponse message;
  ASSERT_TRUE(ToMessage(response, request, &message).ok());
  EXPECT_FALSE(message.has_timings()) << "they are not over yet";
  SetTimings(response.timings, &message);
  EXPECT_EQ(message.model(), "m");
  EXPECT_EQ(message.version(), 7);
  EXPECT_EQ(message.request_id(), "r");
  EXPECT_EQ(message.batch_size(), 4);
  EXPECT_EQ(message.picture_width(), 640);
  EXPECT_EQ(message.picture_height(), 480);
  EXPECT_EQ(message.timings().encode().nanos(), 3'000'000);
  EXPECT_EQ(message.timings().total().seconds(), 1);
  EXPECT_EQ(message.timings().total().nanos(), 500'000'000);
  EXPECT_EQ(message.classification().classes_size(), 3);
}

TEST(VisionMessagesTest, AModelTellsItsTaskViewsAndBuckets) {
  ModelSnapshot snapshot;
  snapshot.state = ModelSnapshot::State::kReady;
  v1::Model classifier;
  ToMessage(snapshot, &classifier);
  EXPECT_EQ(classifier.task(), "classification");
  EXPECT_EQ(classifier.views(), 1);
  EXPECT_EQ(classifier.buckets(), "");
  snapshot.description.task = models::Task::kStereo;
  snapshot.description.input.views = 2;
  snapshot.description.input.fit = models::Fit::kKeepRatio;
  snapshot.description.input.buckets.stride = 16;
  v1::Model stereo;
  ToMessage(snapshot, &stereo);
  EXPECT_EQ(stereo.task(), "stereo");
  EXPECT_EQ(stereo.views(), 2);
  EXPECT_EQ(stereo.buckets(), "stride:16");
}

TEST(VisionMessagesTest, AModelTellsTheLargestInput) {
  ModelSnapshot snapshot;
  snapshot.state = ModelSnapshot::State::kReady;
  snapshot.description.task = models::Task::kDetection;
  snapshot.description.input.fit = models::Fit::kKeepRatio;
  snapshot.description.input.height = 896;
  snapshot.description.input.width = 1280;
  snapshot.description.input.short_side = 128;
  snapshot.description.input.long_side = 256;
  v1::Model detector;
  ToMessage(snapshot, &detector);
  EXPECT_EQ(detector.input_width(), 256);
  EXPECT_EQ(detector.input_height(), 128);
  snapshot.description.task = models::Task::kTensors;
  v1::Model program;
  ToMessage(snapshot, &program);
  EXPECT_EQ(program.input_width(), 0);
  EXPECT_EQ(program.input_height(), 0);
}

TEST(VisionMessagesTest, AModelTellsWhetherItServes) {
  const auto told = [](ModelSnapshot::State state) {
    ModelSnapshot snapshot;
    snapshot.name = "m";
    snapshot.state = state;
    snapshot.reason = "why";
    v1::Model message;
    ToMessage(snapshot, &message);
    EXPECT_EQ(message.reason(), "why");
    EXPECT_EQ(message.task().empty(), state != ModelSnapshot::State::kReady)
        << "of a network that is not there";
    return message.state();
  };
  EXPECT_EQ(told(ModelSnapshot::State::kLoading), v1::Model::LOADING);
  EXPECT_EQ(told(ModelSnapshot::State::kReady), v1::Model::READY);
  EXPECT_EQ(told(ModelSnapshot::State::kUnloading), v1::Model::UNAVAILABLE);
  EXPECT_EQ(told(ModelSnapshot::State::kUnavailable), v1::Model::UNAVAILABLE);
}

TEST(VisionMessagesTest, OfAnEnsembleThereIsNoTask) {
  ModelSnapshot snapshot;
  snapshot.state = ModelSnapshot::State::kReady;
  snapshot.ensemble = true;
  v1::Model message;
  ToMessage(snapshot, &message);
  EXPECT_EQ(message.task(), "");
}

}  // namespace
}  // namespace saccade::server
