#include "server/protocols/inference_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "server/protocols/testing/byte_buffers.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const absl::Time kArrival = absl::UnixEpoch() + absl::Hours(1);

// A request, and what it points into.
struct Parsed {
  std::unique_ptr<InferenceRequest> received;
  absl::StatusOr<Request> request;

  bool ok() const { return request.ok(); }
  const absl::Status& status() const { return request.status(); }
  const Request* operator->() const { return &*request; }
};

Parsed Parse(const inference::ModelInferRequest& message) {
  // In slices so small that hardly anything lies in one.
  auto received = std::make_unique<InferenceRequest>();
  EXPECT_TRUE(ReadInferenceRequest(testing::InSlices(message, 5), *received).ok());
  auto request = FromMessage(*received, kArrival, absl::InfiniteFuture());
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

std::string Element(std::string_view bytes) {
  const auto length = static_cast<uint32_t>(bytes.size());
  std::string element(4, '\0');
  std::memcpy(element.data(), &length, 4);
  return element.append(bytes);
}

void ExpectInvalid(const inference::ModelInferRequest& message, std::string_view hint) {
  const absl::Status status = Parse(message).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(hint)));
}

TEST(InferenceMessagesTest, RawFloatsAreNotCopied) {
  auto message = Tensor("FP32", {2, 3, 4, 4});
  message.add_raw_input_contents(std::string(2 * 48 * 4, '\0'));
  InferenceRequest received;
  ASSERT_TRUE(ReadInferenceRequest(testing::InSlices(message, 64), received).ok());
  const auto request = FromMessage(received, kArrival, absl::InfiniteFuture());
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->size(), 2);
  const BytePieces& data = std::get<TensorInput>(request->input).data;
  EXPECT_EQ(data.size(), 384u);
  const std::string_view last = data.pieces().back();
  EXPECT_EQ(static_cast<const void*>(last.data() + last.size()), received.slices.back().end());
}

TEST(InferenceMessagesTest, TypedFloatsServeToo) {
  auto message = Tensor("FP32", {1, 3, 1, 1});
  for (int i = 0; i < 3; ++i) message.mutable_inputs(0)->mutable_contents()->add_fp32_contents(i);
  EXPECT_TRUE(Parse(message).ok());
  message.add_raw_input_contents(std::string(12, '\0'));
  ExpectInvalid(message, "both");
}

TEST(InferenceMessagesTest, ByteCountMustBeTheShapes) {
  auto message = Tensor("FP32", {1, 3, 4, 4});
  message.add_raw_input_contents(std::string(191, '\0'));
  ExpectInvalid(message, "holds 191 bytes; FP32 of shape [1,3,4,4] is 192");
  ExpectInvalid(Tensor("FP32", {-1, 3, 4, 4}), "[-1,3,4,4]");
  ExpectInvalid(Tensor("FP32", {int64_t{1} << 40, int64_t{1} << 40}), "is not one of a tensor");
}

TEST(InferenceMessagesTest, BytesSplitIntoPictures) {
  auto message = Tensor("BYTES", {2, 1});
  message.add_raw_input_contents(Element("one") + Element("three"));
  const auto request = Parse(message);
  ASSERT_TRUE(request.ok()) << request.status();
  const auto& pictures = std::get<std::vector<Picture>>(request->input);
  ASSERT_EQ(pictures.size(), 2u);
  EXPECT_EQ(std::get<EncodedPicture>(pictures[1]).data.bytes, "three");
}

TEST(InferenceMessagesTest, OneEntryForTheOneInput) {
  auto message = Tensor("FP32", {1});
  for (int i = 0; i < 3; ++i) message.add_raw_input_contents("four");
  ExpectInvalid(message, "raw_input_contents: has 3 entries; expected one per input, which is 1");
}

TEST(InferenceMessagesTest, MalformedBytesAreRefused) {
  auto message = Tensor("BYTES", {1});
  message.add_raw_input_contents("");
  auto& raw = *message.mutable_raw_input_contents(0);
  ExpectInvalid(message, "fewer");
  raw = "abc";
  ExpectInvalid(message, "4-byte length");
  raw = Element("12345").substr(0, 7);
  ExpectInvalid(message, "5 bytes, but 3 are left");
  raw = Element("a") + Element("b");
  ExpectInvalid(message, "more");
  ExpectInvalid(Tensor("BYTES", {1, 65536}), "[n] or [n,1]");
  ExpectInvalid(Tensor("BYTES", {1, 0}), "[n] or [n,1]");
  ExpectInvalid(Tensor("BYTES", {1, 1, 1}), "[n] or [n,1]");
}

TEST(InferenceMessagesTest, TwoColumnsOfBytesAreStereoPairs) {
  auto message = Tensor("BYTES", {2, 2});
  message.add_raw_input_contents(Element("l0") + Element("r0") + Element("l1") + Element("r1"));
  const auto request = Parse(message);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->views, 2);
  EXPECT_EQ(request->size(), 2);
  const auto& pictures = std::get<std::vector<Picture>>(request->input);
  ASSERT_EQ(pictures.size(), 4u);
  EXPECT_EQ(std::get<EncodedPicture>(pictures[1]).data.bytes, "r0");
}

TEST(InferenceMessagesTest, NamesAndTypesAreChecked) {
  ExpectInvalid(Tensor("INT8", {1}), "'INT8', expected FP32");
  auto message = Tensor("BYTES", {1});
  message.mutable_inputs(0)->mutable_contents()->add_bytes_contents("x");
  ASSERT_TRUE(Parse(message).ok());
  message.set_model_version("one");
  ExpectInvalid(message, "'one'");
  message.set_model_version("3");
  EXPECT_EQ(Parse(message)->version, 3);
  message.mutable_inputs(0)->set_name("INPUT__0");
  ExpectInvalid(message, "'INPUT__0'; the model's is 'image'");
  message.clear_inputs();
  ExpectInvalid(message, "has 0 tensors");
}

TEST(InferenceMessagesTest, ParametersThatChangeTheAnswerAreNotIgnored) {
  auto message = Tensor("BYTES", {1});
  message.mutable_inputs(0)->mutable_contents()->add_bytes_contents("x");
  (*message.mutable_parameters())["timeout"].set_int64_param(5000);
  (*message.mutable_parameters())["priority"].set_uint64_param(2);
  (*message.mutable_parameters())["my_own"].set_string_param("ignored");
  const auto request = Parse(message);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->timeout, absl::Milliseconds(5));
  EXPECT_EQ(request->deadline, absl::InfiniteFuture()) << "the timeout is for the queue alone";
  EXPECT_EQ(request->priority, -2);
  (*message.mutable_parameters())["sequence_id"].set_int64_param(1);
  EXPECT_EQ(Parse(message).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(InferenceMessagesTest, OutputsAreCheckedOnceTheModelIsKnown) {
  auto message = Tensor("BYTES", {1});
  message.mutable_inputs(0)->mutable_contents()->add_bytes_contents("x");
  message.add_outputs()->set_name("boxes");
  const auto request = Parse(message);
  ASSERT_TRUE(request.ok()) << request.status();
  models::Description model;
  model.task = models::Task::kDetection;
  EXPECT_TRUE(request->accepts(model).ok());
  model.task = models::Task::kClassification;
  const absl::Status refused = request->accepts(model);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("'boxes'; the model's is 'logits'"));
}

TEST(InferenceMessagesTest, AnswerSaysWhoGaveIt) {
  models::Description model;
  model.classes = 2;
  Response response;
  response.model = "m";
  response.version = 3;
  response.description = &model;
  response.results = {models::Classification{.logits = {1, 2}}};
  inference::ModelInferRequest request;
  request.set_id("id");
  const auto answer = ToAnswer(std::make_shared<const Response>(response), request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->fields.model_name(), "m");
  EXPECT_EQ(answer->fields.model_version(), "3");
  EXPECT_EQ(answer->fields.id(), "id");
  EXPECT_EQ(answer->fields.outputs_size(), 1);
}

TEST(InferenceMessagesTest, MetadataNamesTheNaturalFormOfTheInput) {
  ModelSnapshot snapshot;
  snapshot.name = "m";
  snapshot.version = 2;
  snapshot.description.input.height = 64;
  snapshot.description.input.width = 48;
  inference::ModelMetadataResponse cropped;
  ToMessage(snapshot, &cropped);
  EXPECT_EQ(cropped.inputs(0).datatype(), "FP32");
  EXPECT_THAT(cropped.inputs(0).shape(), ElementsAre(-1, 3, 64, 48));
  snapshot.description.task = models::Task::kStereo;
  snapshot.description.input.views = 2;
  snapshot.description.input.fit = models::Fit::kKeepRatio;
  inference::ModelMetadataResponse pairs;
  ToMessage(snapshot, &pairs);
  EXPECT_EQ(pairs.inputs(0).datatype(), "BYTES");
  EXPECT_THAT(pairs.inputs(0).shape(), ElementsAre(-1, 2));
  EXPECT_EQ(pairs.outputs(0).name(), "disparity");
  EXPECT_THAT(pairs.outputs(0).shape(), ElementsAre(-1, -1, -1));
}

}  // namespace
}  // namespace saccade::server
