#include "server/protocols/rest/answer.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

template <typename T>
Tensor TensorOf(const std::string& name, DataType type, std::vector<T> values) {
  const auto kept = std::make_shared<const std::vector<T>>(std::move(values));
  return {.name = name,
          .type = type,
          .shape = {static_cast<int64_t>(kept->size())},
          .data = BytePieces({reinterpret_cast<const char*>(kept->data()), kept->size() * sizeof(T)}, kept)};
}

Tensor Texts(const std::string& bytes, int64_t count) {
  const auto kept = std::make_shared<const std::string>(bytes);
  return {.name = "texts", .type = DataType::kBytes, .shape = {count}, .data = BytePieces(*kept, kept)};
}

absl::StatusOr<HttpResponse> Answer(std::vector<Tensor> outputs, const RestForm& form = {},
                                    int64_t max = 1'000'000) {
  return ToRestAnswer({.model = "m", .version = 3, .outputs = std::move(outputs)}, "7", form, max);
}

std::string DataOf(Tensor tensor) {
  const auto answer = Answer({std::move(tensor)});
  if (!answer.ok()) return std::string(answer.status().message());
  return nlohmann::json::parse(answer->body)["outputs"][0]["data"].dump();
}

TEST(RestAnswerTest, TensorsAreJson) {
  const auto answer = Answer({TensorOf<float>("x", DataType::kFp32, {0.1f, -2, 3e20f}),
                              TensorOf<uint8_t>("y", DataType::kUint8, {})});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->body, R"({"id":"7","model_name":"m","model_version":"3","outputs":[)"
                          R"({"name":"x","datatype":"FP32","shape":[3],"data":[0.1,-2.0,3e+20]},)"
                          R"({"name":"y","datatype":"UINT8","shape":[0],"data":[]}]})");
  EXPECT_EQ(answer->content_type, "application/json");
  EXPECT_THAT(answer->headers, IsEmpty());
}

TEST(RestAnswerTest, EveryTypeIsWrittenWhole) {
  EXPECT_EQ(DataOf(TensorOf<uint8_t>("x", DataType::kBool, {0, 1})), "[false,true]");
  EXPECT_EQ(DataOf(TensorOf<uint8_t>("x", DataType::kUint8, {0, 255})), "[0,255]");
  EXPECT_EQ(DataOf(TensorOf<int8_t>("x", DataType::kInt8, {-128, 127})), "[-128,127]");
  EXPECT_EQ(DataOf(TensorOf<uint16_t>("x", DataType::kUint16, {65535})), "[65535]");
  EXPECT_EQ(DataOf(TensorOf<int16_t>("x", DataType::kInt16, {-32768})), "[-32768]");
  EXPECT_EQ(DataOf(TensorOf<uint32_t>("x", DataType::kUint32, {4294967295u})), "[4294967295]");
  EXPECT_EQ(DataOf(TensorOf<int32_t>("x", DataType::kInt32, {-2147483647})), "[-2147483647]");
  EXPECT_EQ(DataOf(TensorOf<uint64_t>("x", DataType::kUint64, {18446744073709551615u})),
            "[18446744073709551615]");
  EXPECT_EQ(DataOf(TensorOf<int64_t>("x", DataType::kInt64, {std::numeric_limits<int64_t>::min()})),
            "[-9223372036854775808]");
  EXPECT_EQ(DataOf(TensorOf<double>("x", DataType::kFp64, {1e300, 0.5})), "[1e+300,0.5]");
  EXPECT_EQ(DataOf(TensorOf<float>("x", DataType::kFp32, {1, NAN})), R"([1.0,"NaN"])");
  EXPECT_EQ(DataOf(TensorOf<double>("x", DataType::kFp64, {INFINITY, -INFINITY})),
            R"(["Infinity","-Infinity"])");
  EXPECT_EQ(DataOf(Texts(std::string("\2\0\0\0a\"\0\0\0\0", 10), 2)), R"(["a\"",""])");
}

TEST(RestAnswerTest, WhatJsonCannotExpressIsAnError) {
  EXPECT_THAT(DataOf(TensorOf<uint16_t>("x", DataType::kFp16, {0})), HasSubstr("is FP16"));
  EXPECT_THAT(DataOf(TensorOf<uint16_t>("x", DataType::kBf16, {0})), HasSubstr("is BF16"));
  EXPECT_THAT(DataOf(Texts(std::string("\1\0\0\0\xff", 5), 1)), HasSubstr("element 0 is not UTF-8"));
}

TEST(RestAnswerTest, BinaryTensorsStandBehindTheJson) {
  RestForm form;
  form.binary = {{"x", true}};
  const Tensor tensor = TensorOf<float>("x", DataType::kFp32, {1, NAN});
  const char* const lies_at = tensor.data.pieces()[0].data();
  const auto answer = Answer({tensor, TensorOf<uint8_t>("y", DataType::kUint8, {5})}, form);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->body, R"({"id":"7","model_name":"m","model_version":"3","outputs":[)"
                          R"({"name":"x","datatype":"FP32","shape":[2],"parameters":{"binary_data_size":8}},)"
                          R"({"name":"y","datatype":"UINT8","shape":[1],"data":[5]}]})");
  ASSERT_EQ(answer->attached.size(), 1u);
  // It is not a copy.
  EXPECT_EQ(answer->attached[0].pieces()[0].data(), lies_at);
  EXPECT_EQ(answer->content_type, "application/octet-stream");
  EXPECT_THAT(answer->headers,
              ElementsAre(Pair("Inference-Header-Content-Length", absl::StrCat(answer->body.size()))));
}

TEST(RestAnswerTest, AnOutputsOwnWishGoesFirst) {
  RestForm form;
  form.binary_by_default = true;
  form.binary = {{"x", false}};
  const auto answer = Answer(
      {TensorOf<uint8_t>("x", DataType::kUint8, {5}), TensorOf<uint8_t>("y", DataType::kUint8, {6})}, form);
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->body, HasSubstr("[5]"));
  EXPECT_EQ(answer->attached.size(), 1u);
}

TEST(RestAnswerTest, WhatIsTooLargeIsNotSent) {
  const auto tensor = TensorOf<float>("x", DataType::kFp32, std::vector<float>(1000, 0.123456f));
  RestForm binary;
  binary.binary_by_default = true;
  EXPECT_TRUE(Answer({tensor}, binary, 5000).ok());
  const auto json = Answer({tensor}, {}, 5000);
  EXPECT_TRUE(absl::IsResourceExhausted(json.status()));
  EXPECT_THAT(std::string(json.status().message()),
              HasSubstr("more than --max-message-bytes 5000; request fewer outputs"));
  EXPECT_TRUE(absl::IsResourceExhausted(Answer({tensor}, binary, 4000).status()));
}

}  // namespace
}  // namespace saccade::server
