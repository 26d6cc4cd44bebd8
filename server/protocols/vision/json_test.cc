#include "server/protocols/vision/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

TEST(VisionJsonTest, ReadsARequestByEitherName) {
  for (const char* text :
       {R"({"model":"m","encoded":"AAH/","detection":{"score_threshold":0.5,"masks":"NONE"}})",
        R"({"model":"m","encoded":"AAH/","detection":{"scoreThreshold":0.5,"masks":2}})"}) {
    v1::PredictRequest request;
    const auto read = PredictRequestFromJson(text, &request);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(request.model(), "m");
    EXPECT_EQ(request.encoded(), std::string("\0\1\xff", 3));
    EXPECT_EQ(request.detection().score_threshold(), 0.5F);
    EXPECT_EQ(request.detection().masks(), v1::DetectionOptions::NONE);
  }
}

TEST(VisionJsonTest, RefusesWhatIsNoRequest) {
  for (const auto& [text, word] : std::initializer_list<std::pair<std::string, std::string>>{
           {"", "JSON"},
           {"[]", "JSON"},
           {R"({"model":)", "JSON"},
           {R"({"modell":"m"})", "modell"},
           {R"({"model":"m","encoded":"*"})", "encoded"},
           {R"({"model":"m","priority":"much"})", "priority"},
           {std::string(100'000, '['), "JSON"},
           {R"({"model":")"
            "\xff"
            R"("})",
            "JSON"}}) {
    v1::PredictRequest request;
    const auto read = PredictRequestFromJson(text, &request);
    ASSERT_FALSE(read.ok()) << text.substr(0, 60);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(word));
  }
}

// A text of empty objects compresses to a hundredth, and takes longer than anything else of its size.
TEST(VisionJsonTest, CompressedTextsHaveFewValues) {
  const auto text_of = [](size_t pictures) {
    std::string text = R"({"model":"m","clip":{"frames":{"pictures":[{})";
    for (size_t i = 1; i < pictures; ++i) text += ",{}";
    return text + "]}}}";
  };
  const auto read = [](const std::string& text, std::optional<size_t> compressed_bytes) {
    v1::PredictRequest request;
    return PredictRequestFromJson(text, &request, nullptr, "", compressed_bytes).status();
  };
  EXPECT_TRUE(read(text_of(10'000), std::nullopt).ok());
  EXPECT_TRUE(read(text_of(100), 50).ok());
  EXPECT_TRUE(read(text_of(1'000), 3'000).ok());
  const absl::Status refused = read(text_of(10'000), 100);
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("more than the 256 that 100 compressed bytes may have; send it uncompressed"));
}

// The parser repeats names that it does not know.
TEST(VisionJsonTest, ErrorsAreShort) {
  v1::PredictRequest request;
  const auto read = PredictRequestFromJson(R"({")" + std::string(1'000'000, 'a') + R"(": 1})", &request);
  EXPECT_TRUE(absl::IsInvalidArgument(read.status()));
  EXPECT_LT(read.status().message().size(), 1000u);
}

TEST(VisionJsonTest, WritesZeros) {
  v1::PredictResponse answer;
  answer.mutable_classification()->add_classes()->set_label("a");
  const auto json = ToProtobufJson(answer);
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_THAT(*json, HasSubstr(R"("classes":[{"index":"0","label":"a","probability":0,"logit":0}])"));
  EXPECT_THAT(*json, HasSubstr(R"("batch_size":0)"));
}

}  // namespace
}  // namespace saccade::server
