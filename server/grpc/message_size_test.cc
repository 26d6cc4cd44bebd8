#include "server/grpc/message_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "inference/grpc_service.pb.h"
#include "saccade/v1/vision.pb.h"
#include "server/grpc/testing/pieces.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using testing::InPieces;
using testing::Repeated;

// Parses `bytes` and expects that the estimate is not below what protobuf says that it uses.
template <typename Message>
void ExpectEnough(const std::string& bytes, const std::string& what) {
  Message message;
  ASSERT_TRUE(message.ParseFromString(bytes)) << what;
  const auto size = ParsedSize(InPieces(bytes, 1000), *Message::descriptor());
  ASSERT_TRUE(size.ok()) << what;
  EXPECT_GE(*size, static_cast<int64_t>(message.SpaceUsedLong())) << what;
}

TEST(MessageSizeTest, IsEnoughForWhatGrowsMost) {
  using Request = inference::ModelInferRequest;
  constexpr int kMany = 20000;
  ExpectEnough<Request>(Repeated(std::string("\x2a\x00", 2), kMany), "empty inputs");
  ExpectEnough<Request>(Repeated(std::string("\x32\x00", 2), kMany), "empty outputs");
  ExpectEnough<Request>(Repeated(std::string("\x3a\x00", 2), kMany), "empty raw inputs");
  ExpectEnough<Request>(Repeated("\xa0\x06\x01", kMany), "unknown numbers");
  ExpectEnough<Request>(Repeated(std::string("\xa2\x06\x00", 3), kMany), "unknown strings");
  ExpectEnough<Request>(Repeated("\xa3\x06\xa4\x06", kMany), "unknown groups");
  Request parameters, contents;
  for (int i = 0; i < kMany; ++i) (*parameters.mutable_parameters())[absl::StrCat(i)].set_bool_param(true);
  ExpectEnough<Request>(parameters.SerializeAsString(), "parameters");
  auto* values = contents.add_inputs()->mutable_contents();
  for (int i = 0; i < kMany; ++i) {
    values->add_int64_contents(1);
    values->add_int_contents(1);
    values->add_bool_contents(true);
    values->add_fp32_contents(1);
    values->add_bytes_contents("");
  }
  ExpectEnough<Request>(contents.SerializeAsString(), "typed contents");
  v1::PredictRequest frames;
  for (int i = 0; i < kMany; ++i) frames.mutable_clip()->mutable_frames()->add_pictures()->set_encoded("x");
  ExpectEnough<v1::PredictRequest>(frames.SerializeAsString(), "frames");
}

TEST(MessageSizeTest, IsNotFarAboveAnOrdinaryMessage) {
  v1::PredictRequest message;
  message.set_model("a model");
  message.set_encoded(std::string(100'000, 'x'));
  const std::string bytes = message.SerializeAsString();
  const auto size = ParsedSize(InPieces(bytes, 30'000), *v1::PredictRequest::descriptor());
  ASSERT_TRUE(size.ok());
  EXPECT_LT(*size, static_cast<int64_t>(bytes.size()) + 1000);
}

// What an unknown group contains must not end the estimate early.
TEST(MessageSizeTest, AGroupDoesNotHideWhatFollows) {
  const std::string group("\xa3\x06\x2a\x02\xff\xff\xa4\x06");
  ExpectEnough<inference::ModelInferRequest>(group + Repeated(std::string("\x2a\x00", 2), 20000),
                                             "inputs after a group");
}

TEST(MessageSizeTest, AgreesWithTheParserOnRandomDamage) {
  std::mt19937 random(1);
  inference::ModelInferRequest whole;
  for (int i = 0; i < 30; ++i) {
    auto* input = whole.add_inputs();
    input->set_name("image");
    input->add_shape(i);
    (*whole.mutable_parameters())[absl::StrCat(i)].set_int64_param(i);
  }
  const std::string bytes = whole.SerializeAsString();
  int good = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = bytes;
    for (int changes = 1 + i % 4; changes > 0; --changes) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    inference::ModelInferRequest message;
    const auto size = ParsedSize(InPieces(damaged, 100), *inference::ModelInferRequest::descriptor());
    if (!message.ParseFromString(damaged)) continue;
    ++good;
    ASSERT_TRUE(size.ok()) << i;
    ASSERT_GE(*size, static_cast<int64_t>(message.SpaceUsedLong())) << i;
  }
  EXPECT_GT(good, 1000);
}

TEST(MessageSizeTest, TooManyMessagesAreRefused) {
  const std::string most = Repeated(std::string("\x2a\x00", 2), kMaxNestedMessages);
  const auto* const type = inference::ModelInferRequest::descriptor();
  EXPECT_TRUE(ParsedSize(InPieces(most, 1 << 20), *type).ok());
  const auto refused = ParsedSize(InPieces(most + std::string("\x2a\x00", 2), 1 << 20), *type);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("inference.ModelInferRequest contains more"));
}

BytePieces CameCompressed(const std::string& bytes, size_t compressed_size) {
  BytePieces pieces = InPieces(bytes, 1 << 20);
  pieces.set_compressed_size(compressed_size);
  return pieces;
}

// A kilobyte of nothing but tags compresses to some ten bytes, and takes longer than anything else of its
// size.
TEST(MessageSizeTest, CompressedMessagesHaveFewParts) {
  const auto* const type = inference::ModelInferRequest::descriptor();
  const auto inputs = [](int count) { return Repeated(std::string("\x2a\x00", 2), count); };
  EXPECT_TRUE(ParsedSize(InPieces(inputs(10'000), 1 << 20), *type).ok());
  EXPECT_TRUE(ParsedSize(CameCompressed(inputs(256), 30), *type).ok());
  EXPECT_TRUE(ParsedSize(CameCompressed(inputs(10'000), 10'000), *type).ok());
  const auto refused = ParsedSize(CameCompressed(inputs(257), 30), *type);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(refused.status().message()),
      HasSubstr("inference.ModelInferRequest came compressed and contains more fields than the 256 that 30 "
                "compressed bytes may have; send it uncompressed"));
  EXPECT_FALSE(ParsedSize(CameCompressed(Repeated("\xa0\x06\x01", 300), 30), *type).ok())
      << "unknown numbers";
  v1::PredictRequest frames;
  for (int i = 0; i < 300; ++i) frames.mutable_clip()->mutable_frames()->add_pictures();
  EXPECT_FALSE(
      ParsedSize(CameCompressed(frames.SerializeAsString(), 30), *v1::PredictRequest::descriptor()).ok());
  EXPECT_EQ(MaxParts(CameCompressed("", 5000), 1000), 1000) << "other bounds stay";
}

// Some clients compress all that they send. The elements of a packed field are no parts.
TEST(MessageSizeTest, TensorsOfZerosMayComeCompressed) {
  inference::ModelInferRequest request;
  request.set_model_name("a model");
  auto* input = request.add_inputs();
  input->set_name("image");
  input->set_datatype("FP32");
  for (const int extent : {1, 3, 224, 224}) input->add_shape(extent);
  inference::ModelInferRequest raw = request;
  raw.add_raw_input_contents(std::string(4 * 3 * 224 * 224, '\0'));
  for (int i = 0; i < 3 * 224 * 224; ++i) input->mutable_contents()->add_fp32_contents(0);
  const auto* const type = inference::ModelInferRequest::descriptor();
  for (const auto& message : {raw, request})
    EXPECT_TRUE(ParsedSize(CameCompressed(message.SerializeAsString(), 700), *type).ok());
}

// Protobuf's parser would reserve 50 MB for the string: it trusts the lengths of the messages around it.
TEST(MessageSizeTest, ALengthBeyondTheMessageIsRefused) {
  // In a PredictRequest: explain, which contains an unknown string; both have 800 MB.
  const std::string lying("\x82\x01\xf0\xfd\xe7\xfd\x02\x82\x01\xf0\xfd\xe7\xfd\x02xx");
  for (size_t size = 0; size <= lying.size(); ++size) {
    const auto refused = ParsedSize(InPieces(lying.substr(0, size), 3), *v1::PredictRequest::descriptor());
    EXPECT_EQ(refused.ok(), size == 0) << size;
  }
  // An input that is longer than the message by one byte, and than its message's end.
  const auto* const infer = inference::ModelInferRequest::descriptor();
  EXPECT_TRUE(ParsedSize(InPieces(std::string("\x2a\x03\x0a\x01x"), 100), *infer).ok());
  EXPECT_FALSE(ParsedSize(InPieces(std::string("\x2a\x04\x0a\x01x"), 100), *infer).ok());
  EXPECT_FALSE(ParsedSize(InPieces(std::string("\x2a\x03\x0a\x02xx"), 100), *infer).ok());
  EXPECT_FALSE(ParsedSize(InPieces(std::string("\xa4\x06"), 100), *infer).ok()) << "no group begins";
  EXPECT_FALSE(ParsedSize(InPieces(std::string("\xa3\x06"), 100), *infer).ok()) << "the group does not end";
}

}  // namespace
}  // namespace saccade::server
