#include "server/protocols/vision/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "server/core/bad_field.h"
#include "server/pictures/png.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

models::Description Model(std::vector<std::string> layers) {
  models::Description model;
  model.attention_layers = std::move(layers);
  return model;
}

v1::PredictRequest Asking(const std::string& layer) {
  v1::PredictRequest message;
  message.set_model("m");
  message.mutable_explain()->set_layer(layer);
  return message;
}

TEST(VisionExplainTest, OnlyTheModelsOwnLayers) {
  const models::Description model = Model({"first", "last"});
  EXPECT_TRUE(CheckExplainFits(v1::PredictRequest(), Model({})).ok());
  EXPECT_TRUE(CheckExplainFits(Asking("first"), model).ok());
  EXPECT_TRUE(CheckExplainFits(Asking(""), model).ok());

  const absl::Status unknown = CheckExplainFits(Asking("other"), model);
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(BadFieldOf(unknown), "explain.layer");
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("'other'; model 'm' has first, last"));
  EXPECT_LT(CheckExplainFits(Asking(std::string(10'000, 'x')), model).message().size(), 300U);

  const absl::Status none = CheckExplainFits(Asking(""), Model({}));
  EXPECT_EQ(none.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(BadFieldOf(none), "explain");
}

TEST(VisionExplainTest, AsManyMapsAsAskedForWithinBounds) {
  v1::Explain message;
  EXPECT_TRUE(CheckExplain(message).ok());
  EXPECT_EQ(WishOf(message).max_maps, 16);
  message.set_max_maps(64);
  EXPECT_TRUE(CheckExplain(message).ok());
  EXPECT_EQ(WishOf(message).max_maps, 64);
  for (const int wrong : {-1, 65}) {
    message.set_max_maps(wrong);
    EXPECT_EQ(BadFieldOf(CheckExplain(message)), "explain.max_maps");
  }
}

TEST(VisionExplainTest, PositionsLieInThePictureAndAreForThoseThatHaveMapsOfThem) {
  v1::PredictRequest asking = Asking("");
  v1::Explain& message = *asking.mutable_explain();
  ASSERT_EQ(WishOf(message).positions.size(), 1U);
  EXPECT_EQ(WishOf(message).positions[0].x, 0.5F);
  message.add_positions()->set_x(1);
  message.add_positions()->set_y(0.25F);
  EXPECT_TRUE(CheckExplain(message).ok());
  ASSERT_EQ(WishOf(message).positions.size(), 2U);
  EXPECT_EQ(WishOf(message).positions[0].x, 1);
  EXPECT_EQ(WishOf(message).positions[1].y, 0.25F);

  models::Description model = Model({"a"});
  EXPECT_EQ(BadFieldOf(CheckExplainFits(asking, model)), "explain.positions");
  model.attention_by_position = true;
  EXPECT_TRUE(CheckExplainFits(asking, model).ok());

  for (const float wrong : {-0.01F, 1.01F, std::numeric_limits<float>::quiet_NaN()}) {
    message.mutable_positions(1)->set_y(wrong);
    EXPECT_EQ(BadFieldOf(CheckExplain(message)), "explain.positions[1]");
  }
  message.mutable_positions(1)->set_y(0);
  while (message.positions_size() < 17) message.add_positions();
  EXPECT_EQ(BadFieldOf(CheckExplain(message)), "explain.positions");
}

TEST(VisionExplainTest, MapsAreGreyFromTheLeastToTheMost) {
  v1::Explanation message;
  const models::Explanation explanation{
      .layer = "a", .maps = {{"ramp", 1, 3, {-1, 0, 1}}, {"flat", 2, 1, {0.5F, 0.5F}}}, .available = 7};
  ASSERT_TRUE(SetExplanation(explanation, &message).ok());
  EXPECT_EQ(message.layer(), "a");
  EXPECT_EQ(message.available(), 7);
  ASSERT_EQ(message.maps_size(), 2);
  const v1::AttentionMap& ramp = message.maps(0);
  EXPECT_EQ(ramp.name(), "ramp");
  EXPECT_EQ(ramp.min(), -1);
  EXPECT_EQ(ramp.max(), 1);
  const uint8_t grey[] = {0, 128, 255};
  EXPECT_EQ(ramp.png(), *GreyPng(grey, 1, 3));
  EXPECT_EQ(message.maps(1).width(), 1);
  EXPECT_EQ(message.maps(1).height(), 2);
  EXPECT_EQ(message.maps(1).min(), message.maps(1).max());
}

TEST(VisionExplainTest, TheSeenPartLiesInTheRegion) {
  const models::ImageInput input{
      .fit = models::Fit::kCropCentre, .height = 224, .width = 224, .short_side = 256};
  v1::Explanation message;
  SetSeen(input, {.width = 1024, .height = 512}, &message);
  EXPECT_EQ(message.seen().x(), 288);
  EXPECT_EQ(message.seen().y(), 32);
  EXPECT_EQ(message.seen().width(), 448);
  EXPECT_EQ(message.seen().height(), 448);
  SetSeen(input,
          {.width = 1024, .height = 512, .region = Region{.x = 100, .y = 10, .width = 64, .height = 64}},
          &message);
  EXPECT_EQ(message.seen().x(), 104);
  EXPECT_EQ(message.seen().y(), 14);
  EXPECT_EQ(message.seen().width(), 56);
  EXPECT_EQ(message.seen().height(), 56);
}

}  // namespace
}  // namespace saccade::server
