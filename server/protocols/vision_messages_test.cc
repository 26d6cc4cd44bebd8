#include "server/protocols/vision_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  message.set_request_id(std::string(129, 'x'));
  ExpectInvalid(message, "request_id", "129");
  message = Encoded();
  message.set_priority(101);
  ExpectInvalid(message, "priority", "101");
  message = Encoded();
  message.mutable_classification()->set_top_k(-1);
  ExpectInvalid(message, "classification.top_k", "-1");
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

TEST(VisionMessagesTest, AnswerHasLabelsTimingsAndAtMostTopK) {
  models::Description model;
  model.classes = 3;
  model.labels = {"circle", "square", "star"};
  Response response;
  response.model = "m";
  response.version = 7;
  response.description = &model;
  response.results = {models::Classification{.logits = {0.0f, 2.0f, 1.0f}}};
  response.pictures = {{640, 480}};
  response.timings.total = absl::Milliseconds(1500);
  response.batch_size = 4;
  v1::PredictRequest request = Encoded();
  request.set_request_id("r");
  request.mutable_classification()->set_top_k(2);
  v1::PredictResponse message;
  ToMessage(response, request, &message);
  EXPECT_EQ(message.version(), 7);
  EXPECT_EQ(message.request_id(), "r");
  EXPECT_EQ(message.batch_size(), 4);
  EXPECT_EQ(message.picture_width(), 640);
  EXPECT_EQ(message.timings().total().seconds(), 1);
  EXPECT_EQ(message.timings().total().nanos(), 500'000'000);
  ASSERT_EQ(message.classification().classes_size(), 2);
  EXPECT_EQ(message.classification().classes(0).label(), "square");
  EXPECT_EQ(message.classification().classes(1).label(), "star");
  EXPECT_NEAR(message.classification().classes(0).probability(), 0.66524, 1e-5);
}

}  // namespace
}  // namespace saccade::server
