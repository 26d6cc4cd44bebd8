#include "server/protocols/inference/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "server/grpc/testing/fake_ledger.h"
#include "server/grpc/testing/pieces.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const SharedMemory kNoSharing({});
const absl::Time kArrival = absl::UnixEpoch() + absl::Hours(1);

// The versions of model m, of which version 3 has a label.
absl::StatusOr<int64_t> VersionOf(absl::string_view model, absl::string_view version) {
  EXPECT_EQ(model, "m");
  if (version == "stable") return 3;
  if (version.empty()) return 0;
  return absl::InvalidArgumentError(absl::StrCat("no version '", version, "'"));
}

// A call and the request that it refers to.
struct Parsed {
  std::unique_ptr<InferenceRequest> received;
  absl::StatusOr<TensorCall> request;

  bool ok() const { return request.ok(); }
  const absl::Status& status() const { return request.status(); }
  const TensorCall* operator->() const { return &*request; }
};

Parsed Parse(const inference::ModelInferRequest& message) {
  // The slices are so small that hardly any value is in one piece.
  auto received = std::make_unique<InferenceRequest>();
  EXPECT_TRUE(ReadInferenceRequest(testing::InPieces(message, 5), *received).ok());
  auto request = FromMessage(*received, kNoSharing, VersionOf, kArrival, absl::InfiniteFuture());
  return {std::move(received), std::move(request)};
}

inference::ModelInferRequest Tensor(const std::string& datatype, std::initializer_list<int64_t> shape) {
  inference::ModelInferRequest message;
  message.set_model_name("m");
  auto* input = message.add_inputs();
  input->set_name("image");
  input->set_datatype(datatype);
  for (const int64_t extent : shape) input->add_shape(extent);
  return message;
}

void ExpectInvalid(const inference::ModelInferRequest& message, std::string_view hint,
                   absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  const absl::Status status = Parse(message).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(hint)));
}

TEST(InferenceMessagesTest, RawFloatsAreNotCopied) {
  auto message = Tensor("FP32", {2, 3, 4, 4});
  message.add_raw_input_contents(std::string(2 * 48 * 4, '\0'));
  InferenceRequest received;
  ASSERT_TRUE(ReadInferenceRequest(testing::InPieces(message, 64), received).ok());
  const auto request = FromMessage(received, kNoSharing, VersionOf, kArrival, absl::InfiniteFuture());
  ASSERT_TRUE(request.ok()) << request.status();
  const BytePieces& data = request->inputs[0].data;
  EXPECT_EQ(data.size(), 384u);
  const std::string_view last = data.pieces().back();
  const std::string_view end = received.received.pieces().back();
  EXPECT_EQ(static_cast<const void*>(last.data() + last.size()), end.data() + end.size());
}

TEST(InferenceMessagesTest, TypedFloatsServeToo) {
  auto message = Tensor("FP32", {1, 3, 1, 1});
  for (int i = 0; i < 3; ++i) message.mutable_inputs(0)->mutable_contents()->add_fp32_contents(i);
  EXPECT_TRUE(Parse(message).ok());
  message.add_raw_input_contents(std::string(12, '\0'));
  ExpectInvalid(message, "both");
}

TEST(InferenceMessagesTest, AModelsNameIsBounded) {
  auto message = Tensor("FP32", {1});
  message.set_model_name(std::string(1025, 'm'));
  ExpectInvalid(message, "model_name: has 1025 bytes; at most 1024 are accepted");
}

// An error prints the shape.
TEST(InferenceMessagesTest, ExtentsAreBounded) {
  auto message = Tensor("FP32", {});
  for (int i = 0; i < 100'000; ++i) message.mutable_inputs(0)->add_shape(10'000);
  ExpectInvalid(message, "the shape has 100000 extents; at most 32");
  EXPECT_LT(Parse(message).status().message().size(), 200u);
}

TEST(InferenceMessagesTest, ByteCountMustBeTheShapes) {
  auto message = Tensor("FP32", {1, 3, 4, 4});
  message.add_raw_input_contents(std::string(191, '\0'));
  ExpectInvalid(message, "holds 191 bytes; FP32 of shape [1,3,4,4] is 192");
  ExpectInvalid(Tensor("FP32", {-1, 3, 4, 4}), "[-1,3,4,4]");
  ExpectInvalid(Tensor("FP32", {int64_t{1} << 40, int64_t{1} << 40}), "is invalid; expected dimensions");
}

TEST(InferenceMessagesTest, AnEntryForEachInput) {
  auto message = Tensor("FP32", {1});
  for (int i = 0; i < 3; ++i) message.add_raw_input_contents("four");
  ExpectInvalid(message, "raw_input_contents: has 3 entries; expected one per input, of which there is 1");
}

TEST(InferenceMessagesTest, EachInputHasItsBytes) {
  auto message = Tensor("FP32", {1});
  message.add_raw_input_contents("four");
  auto* second = message.add_inputs();
  second->set_name("mask");
  second->set_datatype("INT8");
  second->add_shape(2);
  ExpectInvalid(message, "has 1 entries; expected one per input, of which there are 2");
  message.add_raw_input_contents("ab");
  const auto request = Parse(message);
  ASSERT_TRUE(request.ok()) << request.status();
  ASSERT_EQ(request->inputs.size(), 2u);
  EXPECT_EQ(request->inputs[1].name, "mask");
  EXPECT_EQ(request->inputs[1].type, DataType::kInt8);
  EXPECT_THAT(request->inputs[1].shape, ElementsAre(2));
  EXPECT_EQ(request->inputs[1].data.size(), 2u);
  second->mutable_contents()->add_int_contents(1);
  ExpectInvalid(message, "input 'mask': has both contents");
}

TEST(InferenceMessagesTest, SharedMemoryTakesTheBytesPlace) {
  SharedMemory memory({.allowed = true, .folder = ::testing::TempDir()});
  std::ofstream(::testing::TempDir() + "/shared_floats") << std::string(8, 'x') + "abcd";
  ASSERT_TRUE(memory.Register({.name = "r", .key = "/shared_floats", .size = 12}).ok());
  auto message = Tensor("FP32", {1});
  *message.add_inputs() = message.inputs(0);
  message.mutable_inputs(1)->set_name("mask");
  auto& parameters = *message.mutable_inputs(0)->mutable_parameters();
  parameters["shared_memory_region"].set_string_param("r");
  parameters["shared_memory_byte_size"].set_int64_param(4);
  parameters["shared_memory_offset"].set_int64_param(8);
  // For the other input only.
  message.add_raw_input_contents("efgh");
  InferenceRequest received;
  ASSERT_TRUE(ReadInferenceRequest(testing::InPieces(message, 5), received).ok());
  const auto call = FromMessage(received, memory, VersionOf, kArrival, absl::InfiniteFuture());
  ASSERT_TRUE(call.ok()) << call.status();
  std::string bytes(8, ' ');
  call->inputs[0].data.CopyTo(bytes.data());
  call->inputs[1].data.CopyTo(bytes.data() + 4);
  EXPECT_EQ(bytes, "abcdefgh");
  ExpectInvalid(message, "input 'image': shared memory is disabled", absl::StatusCode::kUnimplemented);
  message.add_raw_input_contents("efgh");
  ExpectInvalid(message, "one per input that is not in shared memory, of which there is 1");
  message.clear_raw_input_contents();
  message.mutable_inputs(0)->mutable_contents();
  ExpectInvalid(message, "has both contents and shared_memory_region");
  message.mutable_inputs(0)->clear_contents();
  parameters.erase("shared_memory_byte_size");
  ExpectInvalid(message, "shared_memory_byte_size: is missing");
}

TEST(InferenceMessagesTest, SharedInputsTakeNoMoreTogetherThanOneMay) {
  SharedMemory memory({.allowed = true, .max_tensor_bytes = 10, .folder = ::testing::TempDir()});
  std::ofstream(::testing::TempDir() + "/shared_often") << std::string(20, 'x');
  ASSERT_TRUE(memory.Register({.name = "r", .key = "/shared_often", .size = 20}).ok());
  auto message = Tensor("FP32", {1});
  auto& parameters = *message.mutable_inputs(0)->mutable_parameters();
  parameters["shared_memory_region"].set_string_param("r");
  parameters["shared_memory_byte_size"].set_int64_param(4);
  const auto read = [&memory](const inference::ModelInferRequest& request) {
    InferenceRequest received;
    EXPECT_TRUE(ReadInferenceRequest(testing::InPieces(request, 5), received).ok());
    return FromMessage(received, memory, VersionOf, kArrival, absl::InfiniteFuture()).status();
  };
  *message.add_inputs() = message.inputs(0);
  EXPECT_TRUE(read(message).ok());
  *message.add_inputs() = message.inputs(0);
  const absl::Status third = read(message);
  EXPECT_EQ(third.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(third.message()), HasSubstr("12 bytes, more than --max-message-bytes 10"));
}

TEST(InferenceMessagesTest, SharedInputsAreChargedAsLongAsTheyExist) {
  SharedMemory memory({.allowed = true, .folder = ::testing::TempDir()});
  std::ofstream(::testing::TempDir() + "/shared_charged") << std::string(20, 'x');
  ASSERT_TRUE(memory.Register({.name = "r", .key = "/shared_charged", .size = 20}, "client").ok());
  auto message = Tensor("FP32", {5});
  auto& parameters = *message.mutable_inputs(0)->mutable_parameters();
  parameters["shared_memory_region"].set_string_param("r");
  parameters["shared_memory_byte_size"].set_int64_param(20);
  FakeLedger ledger(50);
  const auto read = [&](const inference::ModelInferRequest& request) {
    InferenceRequest received;
    EXPECT_TRUE(ReadInferenceRequest(testing::InPieces(request, 5), received).ok());
    return FromMessage(received, memory, VersionOf, kArrival, absl::InfiniteFuture(), "client", &ledger);
  };
  {
    auto call = read(message);
    ASSERT_TRUE(call.ok()) << call.status();
    EXPECT_EQ(call->charged_bytes, 20);
    EXPECT_EQ(ledger.charged(), 20);
    EXPECT_EQ(ledger.client(), "client");
    std::string bytes(20, ' ');
    const BytePieces kept = call->inputs[0].data;
    call->inputs.clear();
    kept.CopyTo(bytes.data());
    EXPECT_EQ(bytes, std::string(20, 'x'));
    EXPECT_EQ(ledger.charged(), 20);
    // There is no room for the second input of this request, and the first is given back.
    *message.add_inputs() = message.inputs(0);
    EXPECT_EQ(read(message).status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(ledger.charged(), 20);
  }
  EXPECT_EQ(ledger.charged(), 0);
  // What cannot be read is not charged.
  std::ofstream(::testing::TempDir() + "/shared_charged") << "x";
  EXPECT_FALSE(read(message).ok());
  EXPECT_EQ(ledger.charged(), 0);
}

TEST(InferenceMessagesTest, SharedOutputsSayWhere) {
  auto message = Tensor("FP32", {1});
  message.add_raw_input_contents("abcd");
  auto* output = message.add_outputs();
  output->set_name("logits");
  (*output->mutable_parameters())["shared_memory_region"].set_string_param("r");
  (*output->mutable_parameters())["shared_memory_byte_size"].set_int64_param(40);
  const auto call = Parse(message);
  ASSERT_TRUE(call.ok()) << call.status();
  ASSERT_TRUE(call->outputs[0].shared);
  EXPECT_EQ(call->outputs[0].shared->region, "r");
  EXPECT_EQ(call->outputs[0].shared->size, 40u);
  (*output->mutable_parameters())["classification"].set_int64_param(2);
  ExpectInvalid(message, "output 'logits': has both shared_memory_region and classification");
}

TEST(InferenceMessagesTest, LongIdsAreRefused) {
  auto message = Tensor("INT8", {1});
  message.set_id(std::string(1025, 'i'));
  ExpectInvalid(message, "id: has 1025 bytes; expected at most 1024");
}

TEST(InferenceMessagesTest, MoreEntriesThanAnyModelHasInputsAreRefused) {
  const auto one = Tensor("INT8", {1});
  auto message = one;
  message.add_raw_input_contents(std::string(1, 'a'));
  for (int i = 1; i < 3000; ++i) {
    *message.add_raw_input_contents() = message.raw_input_contents(0);
    *message.add_inputs() = one.inputs(0);
  }
  ExpectInvalid(message, "has 3000 entries");
}

TEST(InferenceMessagesTest, VersionsAndTypesAreChecked) {
  ExpectInvalid(Tensor("FLOAT", {1}), "'FLOAT', expected a datatype of the protocol");
  auto message = Tensor("BYTES", {1});
  message.mutable_inputs(0)->mutable_contents()->add_bytes_contents("x");
  ASSERT_TRUE(Parse(message).ok());
  message.set_model_version("one");
  ExpectInvalid(message, "'one'");
  message.set_model_version("stable");
  EXPECT_EQ(Parse(message)->version, 3);
}

TEST(InferenceMessagesTest, ParametersThatChangeTheAnswerAreNotIgnored) {
  auto message = Tensor("BYTES", {1});
  message.mutable_inputs(0)->mutable_contents()->add_bytes_contents("x");
  (*message.mutable_parameters())["timeout"].set_int64_param(5000);
  (*message.mutable_parameters())["priority"].set_uint64_param(2);
  (*message.mutable_parameters())["my_own"].set_string_param("ignored");
  (*message.mutable_parameters())["my_number"].set_double_param(0.5);
  const auto request = Parse(message);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->timeout, absl::Milliseconds(5));
  EXPECT_EQ(request->deadline, absl::InfiniteFuture()) << "the timeout is for the queue alone";
  EXPECT_EQ(request->priority, -2);
  (*message.mutable_parameters())["sequence_id"].set_int64_param(1);
  EXPECT_EQ(Parse(message).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(InferenceMessagesTest, WantedOutputsAndTheirClasses) {
  auto message = Tensor("BYTES", {1});
  message.mutable_inputs(0)->mutable_contents()->add_bytes_contents("x");
  message.add_outputs()->set_name("boxes");
  auto* logits = message.add_outputs();
  logits->set_name("logits");
  (*logits->mutable_parameters())["classification"].set_int64_param(3);
  const auto request = Parse(message);
  ASSERT_TRUE(request.ok()) << request.status();
  ASSERT_EQ(request->outputs.size(), 2u);
  EXPECT_EQ(request->outputs[0].name, "boxes");
  EXPECT_EQ(request->outputs[0].classes, 0);
  EXPECT_EQ(request->outputs[1].classes, 3);
  (*logits->mutable_parameters())["classification"].set_string_param("3");
  ExpectInvalid(message, "parameter classification: expected an integer");
}

TEST(InferenceMessagesTest, AnswerSaysWhoGaveIt) {
  const std::string bytes = "four";
  const InferenceAnswer answer = ToAnswer(
      {.model = "m",
       .version = 3,
       .outputs = {{.name = "o", .type = DataType::kInt32, .shape = {1}, .data = BytePieces(bytes)}}},
      "id");
  inference::ModelInferResponse message;
  const size_t size = SizeOf(answer);
  EXPECT_TRUE(CheckSize(answer, static_cast<int64_t>(size)).ok());
  EXPECT_EQ(CheckSize(answer, static_cast<int64_t>(size) - 1).code(), absl::StatusCode::kResourceExhausted);
  const std::string sent = testing::Joined(ToBytes(answer));
  EXPECT_EQ(sent.size(), size);
  ASSERT_TRUE(message.ParseFromString(sent));
  EXPECT_EQ(message.model_name(), "m");
  EXPECT_EQ(message.model_version(), "3");
  EXPECT_EQ(message.id(), "id");
  ASSERT_EQ(message.outputs_size(), 1);
  EXPECT_EQ(message.outputs(0).name(), "o");
  EXPECT_EQ(message.outputs(0).datatype(), "INT32");
  EXPECT_THAT(message.outputs(0).shape(), ElementsAre(1));
  EXPECT_THAT(message.raw_output_contents(), ElementsAre("four"));
}

TEST(InferenceMessagesTest, AnswersTellWhichRegionHasAnOutput) {
  TensorAnswer answer;
  answer.outputs = {{.name = "y",
                     .type = DataType::kUint8,
                     .shape = {4},
                     .data = {},
                     .shared = SharedRange{.region = "r", .size = 4}},
                    {.name = "z",
                     .type = DataType::kUint8,
                     .shape = {4},
                     .data = {},
                     .shared = SharedRange{.region = "r", .offset = 8, .size = 4}}};
  const InferenceAnswer message = ToAnswer(std::move(answer), "");
  const auto& first = message.fields.outputs(0).parameters();
  EXPECT_EQ(first.at("shared_memory_region").string_param(), "r");
  EXPECT_EQ(first.at("shared_memory_byte_size").int64_param(), 4);
  EXPECT_FALSE(first.contains("shared_memory_offset"));
  EXPECT_EQ(message.fields.outputs(1).parameters().at("shared_memory_offset").int64_param(), 8);
}

TEST(InferenceMessagesTest, MetadataNamesTensors) {
  inference::ModelMetadataResponse message;
  ToMessage({.name = "m",
             .versions = {2, 5},
             .platform = "saccade",
             .inputs = {{.name = "image", .type = DataType::kBytes, .shape = {-1, 2}}},
             .outputs = {{.name = "disparity", .type = DataType::kFp32, .shape = {-1, -1, -1}}}},
            &message);
  EXPECT_THAT(message.versions(), ElementsAre("2", "5"));
  EXPECT_EQ(message.platform(), "saccade");
  EXPECT_EQ(message.inputs(0).datatype(), "BYTES");
  EXPECT_THAT(message.inputs(0).shape(), ElementsAre(-1, 2));
  EXPECT_EQ(message.outputs(0).name(), "disparity");
}

}  // namespace
}  // namespace saccade::server
