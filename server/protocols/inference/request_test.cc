#include "server/protocols/inference/request.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <string>

#include "server/grpc/testing/pieces.h"

namespace saccade::server {
namespace {

using google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;

inference::ModelInferRequest Example() {
  inference::ModelInferRequest message;
  message.set_model_name("a model");
  message.set_id("an id");
  auto* input = message.add_inputs();
  input->set_name("image");
  for (const int64_t extent : {1, 3, 480, 640}) input->add_shape(extent);
  (*message.mutable_parameters())["priority"].set_uint64_param(7);
  return message;
}

std::string Text(const BytePieces& bytes) {
  std::string text(bytes.size(), '\0');
  bytes.CopyTo(text.data());
  return text;
}

absl::Status Refused(const std::string& bytes) {
  InferenceRequest request;
  return ReadInferenceRequest(testing::InPieces(bytes, 3), request);
}

TEST(InferenceRequest, FieldsAreParsedAndRawContentsLeftWhereTheyAre) {
  inference::ModelInferRequest message = Example();
  std::string raw(1000, 'r');
  raw[3] = '\x3a';  // like the field's own tag
  message.add_raw_input_contents(raw);
  for (const size_t max : {1, 2, 7, 24, 500, 5000}) {
    InferenceRequest request;
    ASSERT_TRUE(ReadInferenceRequest(testing::InPieces(message, max), request).ok());
    EXPECT_TRUE(MessageDifferencer::Equals(request.fields, Example())) << max;
    EXPECT_EQ(request.raw_count, 1);
    EXPECT_EQ(Text(request.raws.at(0)), raw);
    const std::string_view last = request.raws.at(0).pieces().back();
    const std::string_view received = request.received.pieces().back();
    EXPECT_EQ(static_cast<const void*>(last.data() + last.size()), received.data() + received.size());
  }
}

TEST(InferenceRequest, KeepsAsManyAsAnyModelTakes) {
  inference::ModelInferRequest message = Example();
  for (const char* raw : {"first", "second", ""}) message.add_raw_input_contents(raw);
  InferenceRequest request;
  ASSERT_TRUE(ReadInferenceRequest(testing::InPieces(message, 9), request).ok());
  EXPECT_EQ(request.raw_count, 3);
  ASSERT_EQ(request.raws.size(), 3u);
  EXPECT_EQ(Text(request.raws[0]), "first");
  EXPECT_EQ(Text(request.raws[1]), "second");
  EXPECT_EQ(Text(request.raws[2]), "");
  for (int i = 0; i < 2000; ++i) message.add_raw_input_contents("");
  InferenceRequest many;
  ASSERT_TRUE(ReadInferenceRequest(testing::InPieces(message, 999), many).ok());
  EXPECT_EQ(many.raw_count, 2003);
  EXPECT_EQ(many.raws.size(), static_cast<size_t>(InferenceRequest::kMaxRaws));
  InferenceRequest empty;
  ASSERT_TRUE(ReadInferenceRequest(BytePieces(), empty).ok());
  EXPECT_EQ(empty.raw_count, 0);
}

TEST(InferenceRequest, UnknownFieldsArePassedOver) {
  // Field 100 is a group with a field 7; field 101 has eight bytes, and field 102 four.
  const std::string unknown(
      "\xa3\x06\x3a\x03raw\xa4\x06\xa9\x06"
      "12345678"
      "\xb5\x06"
      "1234",
      25);
  inference::ModelInferRequest message = Example();
  message.add_raw_input_contents("raw");
  InferenceRequest request;
  const auto bytes = testing::InPieces(unknown + message.SerializeAsString(), 2);
  const absl::Status read = ReadInferenceRequest(bytes, request);
  ASSERT_TRUE(read.ok()) << read;
  EXPECT_EQ(request.raw_count, 1);
  EXPECT_EQ(request.fields.model_name(), "a model");
}

TEST(InferenceRequest, MalformedBytesAreTheClientsMistake) {
  for (const std::string& bytes : {
           std::string("\x3a"),  // no length
           std::string("\x3a\x05"
                       "four"),                                      // truncated
           std::string("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),  // a length of 2^63
           std::string("\x0a\x05"
                       "four"),  // another field is truncated
           std::string("\x08"),  // the number is missing
           std::string("\x09"
                       "1234"),                                      // half a number
           std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),  // a tag that does not end
           std::string("\x0a\x02\xff\xfe"),                          // a name that is not UTF-8
           std::string("\x00", 1),                                   // field 0
           std::string("\x0f"),                                      // an unknown wire type
           std::string("\x04"),                                      // the end of a group that was not opened
           std::string("\x3b\x3a\x03raw"),                           // a group that is not closed
       }) {
    const absl::Status status = Refused(bytes);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("not a valid inference.ModelInferRequest"))
        << status;
  }
}

TEST(InferenceRequest, FieldsWithoutEndAreRefusedEarly) {
  // Empty inputs, and empty raw contents.
  for (const char tag : {'\x2a', '\x3a'}) {
    std::string bytes;
    for (int i = 0; i < 70'000; ++i) bytes += {tag, '\0'};
    const absl::Status refused = Refused(bytes);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(refused.message(), HasSubstr("more than 65536 fields"));
  }
}

// A compressed message of a hundred bytes may otherwise keep a thread busy for milliseconds.
TEST(InferenceRequest, ACompressedMessageHasFewParts) {
  constexpr size_t kSent = 40;
  const auto read = [](const std::string& bytes, std::optional<size_t> compressed_size,
                       InferenceRequest& request) {
    BytePieces pieces = testing::InPieces(bytes, 100);
    pieces.set_compressed_size(compressed_size);
    return ReadInferenceRequest(pieces, request);
  };
  const std::string raws = testing::Repeated(std::string("\x3a\x00", 2), 300);
  // One input with 300 parameters: the fields beside the raw contents are counted too.
  const std::string parameters = "\x2a\xd8\x04" + testing::Repeated(std::string("\x22\x00", 2), 300);
  for (const std::string& bytes : {raws, parameters}) {
    InferenceRequest plain, large, refused;
    EXPECT_TRUE(read(bytes, std::nullopt, plain).ok());
    EXPECT_TRUE(read(bytes, 1000, large).ok());
    const absl::Status why = read(bytes, kSent, refused);
    EXPECT_EQ(why.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(
        std::string(why.message()),
        HasSubstr("more fields than the 256 that 40 compressed bytes may have; send it uncompressed"));
  }
  inference::ModelInferRequest zeros = Example();
  zeros.add_raw_input_contents(std::string(1 << 20, '\0'));
  InferenceRequest request;
  EXPECT_TRUE(read(zeros.SerializeAsString(), kSent, request).ok());
  EXPECT_EQ(request.raws.at(0).size(), size_t{1} << 20);
}

// Any bytes give the same result as protobuf's own parser.
TEST(InferenceRequest, AgreesWithProtobufOnRandomDamage) {
  std::mt19937 random(1);
  inference::ModelInferRequest message = Example();
  message.add_raw_input_contents("some bytes");
  const std::string whole = message.SerializeAsString();
  int good = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = whole;
    for (int changes = 1 + i % 3; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (i % 4 == 0) bytes.resize(random() % bytes.size());
    InferenceRequest request;
    const bool is_read = ReadInferenceRequest(testing::InPieces(bytes, 1 + random() % 20), request).ok();
    inference::ModelInferRequest expected;
    ASSERT_EQ(is_read, expected.ParseFromString(bytes)) << i;
    if (!is_read) continue;
    ++good;
    ASSERT_EQ(request.raw_count, expected.raw_input_contents_size()) << i;
    for (size_t raw = 0; raw < request.raws.size(); ++raw) {
      ASSERT_EQ(Text(request.raws[raw]), expected.raw_input_contents(static_cast<int>(raw))) << i;
    }
    expected.clear_raw_input_contents();
    ASSERT_TRUE(MessageDifferencer::Equals(request.fields, expected)) << i;
  }
  EXPECT_GT(good, 1000);
}

// A network thread must not go through many bytes.
TEST(InferenceRequest, RawTensorsOfNumbersAreNotRead) {
  const size_t raw = 300'000;
  const auto bytes = [](const inference::ModelInferRequest& message, bool may_share = false) {
    return BytesToRead(testing::InPieces(message, 5000), may_share, /*is_captured=*/false);
  };
  inference::ModelInferRequest message = Example();
  message.mutable_inputs(0)->set_datatype("FP32");
  const size_t fields = message.ByteSizeLong();
  message.add_raw_input_contents(std::string(raw, 'r'));
  for (const bool may_share : {false, true}) EXPECT_EQ(bytes(message, may_share), fields) << may_share;

  inference::ModelInferRequest elements = message;
  elements.mutable_inputs(0)->set_datatype("BYTES");
  EXPECT_EQ(bytes(elements), elements.ByteSizeLong());

  inference::ModelInferRequest second = message;
  second.add_inputs()->set_datatype("BYTES");
  EXPECT_EQ(bytes(second), second.ByteSizeLong());

  inference::ModelInferRequest many = message;
  for (int i = 0; i < 64; ++i) many.add_inputs();
  EXPECT_EQ(bytes(many), many.ByteSizeLong()) << "the rest is not looked at";

  inference::ModelInferRequest parameters = message;
  for (int i = 0; i < 2000; ++i)
    (*parameters.mutable_inputs(0)->mutable_parameters())[std::to_string(i)].set_bool_param(true);
  EXPECT_EQ(bytes(parameters), parameters.ByteSizeLong()) << "the rest is not looked at";
}

TEST(InferenceRequest, TensorsInSharedMemoryAreLarge) {
  const auto bytes = [](const inference::ModelInferRequest& message, bool may_share) {
    return BytesToRead(testing::InPieces(message, 7), may_share, /*is_captured=*/false);
  };
  inference::ModelInferRequest message = Example();
  EXPECT_EQ(bytes(message, true), message.ByteSizeLong());
  auto& parameters = *message.mutable_inputs(0)->mutable_parameters();
  parameters["shared_memory_byte_size"].set_int64_param(4);
  EXPECT_EQ(bytes(message, true), message.ByteSizeLong());
  parameters["shared_memory_region"].set_string_param("r");
  EXPECT_EQ(bytes(message, true), SIZE_MAX);
  EXPECT_EQ(bytes(message, false), message.ByteSizeLong());
  inference::ModelInferRequest output = Example();
  auto& of_output = *output.add_outputs()->mutable_parameters();
  of_output["shared_memory_byte_size"].set_int64_param(4);
  EXPECT_EQ(bytes(output, true), output.ByteSizeLong());
  of_output["shared_memory_region"].set_string_param("r");
  EXPECT_EQ(bytes(output, true), SIZE_MAX);
  EXPECT_EQ(bytes(output, false), output.ByteSizeLong());
  // An input whose length is missing.
  EXPECT_EQ(BytesToRead(testing::InPieces("\x2a", 3), true, false), SIZE_MAX);
}

TEST(InferenceRequest, LargeMessagesThatMayBeCapturedAreCopiedOnAPool) {
  inference::ModelInferRequest message = Example();
  message.mutable_inputs(0)->set_datatype("FP32");
  message.add_raw_input_contents(std::string(size_t{1} << 20, 'r'));
  EXPECT_EQ(BytesToRead(testing::InPieces(message, 5000), false, /*is_captured=*/true),
            message.ByteSizeLong());
}

TEST(InferenceRequest, IsNamedWithoutBeingParsed) {
  inference::ModelInferRequest message = Example();
  message.set_model_version("3");
  message.add_raw_input_contents(std::string(1000, 'r'));
  for (const size_t max : {1, 2, 7, 24, 5000}) {
    const inference::ModelInferRequest names = NamesOf(testing::InPieces(message, max));
    EXPECT_EQ(names.model_name(), "a model");
    EXPECT_EQ(names.model_version(), "3");
    EXPECT_EQ(names.id(), "an id");
    EXPECT_EQ(names.inputs_size(), 0);
  }
  message.set_id(std::string(5000, 'x'));
  EXPECT_EQ(NamesOf(testing::InPieces(message, 100)).model_name(), "a model");
  EXPECT_EQ(NamesOf(testing::InPieces(message, 100)).id(), "");
  EXPECT_EQ(NamesOf(BytePieces()).id(), "");
  EXPECT_EQ(NamesOf(testing::InPieces("\x1a\x02\xff\xff", 3)).id(), "") << "not UTF-8";
  EXPECT_EQ(NamesOf(testing::InPieces("\x1a\x09short", 3)).id(), "");
}

}  // namespace
}  // namespace saccade::server
