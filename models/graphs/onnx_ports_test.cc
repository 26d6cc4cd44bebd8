#include "models/graphs/onnx_ports.h"

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/api/error.h"
#include "models/graphs/testing/onnx_bytes.h"

namespace saccade::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Message;
using testing::Number;
using testing::OnnxModel;
using testing::OnnxValue;
using ::testing::SizeIs;

std::string WhyNot(const std::string& file) {
  try {
    SummariseOnnx(file);
  } catch (const LoadError& error) {
    return error.what();
  }
  return "";
}

TEST(OnnxPortsTest, InputsAndOutputsHaveNamesTypesAndShapes) {
  const std::string graph = Message(11, OnnxValue("pixels", 1, {-1, 3, 224, 224})) +
                            Message(11, OnnxValue("mask", 9, {})) +
                            Message(12, OnnxValue("scores", 10, {-1, 1000})) +
                            Message(12, Message(1, "any") + Message(2, Message(1, Number(1, 7))));
  const std::string opsets =
      Message(8, Message(1, "com.microsoft") + Number(2, 99)) + Message(8, Number(2, 17));
  const OnnxSummary found =
      SummariseOnnx(Message(2, "pytorch") + Message(3, "2.9") + opsets + OnnxModel(graph));
  EXPECT_EQ(found.producer, "pytorch 2.9");
  EXPECT_EQ(found.opset, 17U);
  ASSERT_THAT(found.inputs, SizeIs(2));
  EXPECT_EQ(found.inputs[0].name, "pixels");
  EXPECT_EQ(DescribePort(found.inputs[0]), "FP32 [-1,3,224,224]");
  EXPECT_EQ(DescribePort(found.inputs[1]), "BOOL []");
  ASSERT_THAT(found.outputs, SizeIs(2));
  EXPECT_EQ(DescribePort(found.outputs[0]), "FP16 [-1,1000]");
  EXPECT_EQ(DescribePort(found.outputs[1]), "INT64 of any shape");
}

TEST(OnnxPortsTest, EveryTypeOfTheProtocolIsKnownAndNoOther) {
  const char* const names[] = {"",     "FP32", "UINT8", "INT8",   "UINT16", "INT16", "INT32", "INT64", "",
                               "BOOL", "FP16", "FP64",  "UINT32", "UINT64", "",      "",      "BF16",  ""};
  for (uint64_t type = 0; type < std::size(names); ++type) {
    const std::string graph = Message(11, OnnxValue("x", type, {1})) + Message(12, OnnxValue("y", 1, {1}));
    const OnnxSummary found = SummariseOnnx(OnnxModel(graph));
    EXPECT_EQ(found.inputs[0].type ? NameOf(*found.inputs[0].type) : "", std::string(names[type])) << type;
  }
}

TEST(OnnxPortsTest, InitializersAmongTheInputsAreLeftOut) {
  const std::string graph = Message(11, OnnxValue("x", 1, {1})) + Message(11, OnnxValue("weight", 1, {5})) +
                            Message(12, OnnxValue("y", 1, {1})) + Message(5, Message(8, "weight"));
  const OnnxSummary found = SummariseOnnx(OnnxModel(graph));
  ASSERT_THAT(found.inputs, SizeIs(1));
  EXPECT_EQ(found.inputs[0].name, "x");
}

TEST(OnnxPortsTest, SizesThatAreNoneAreOpen) {
  const std::string minus_one = Message(1, Number(1, ~uint64_t{0}));
  const std::string shape = Message(1, Number(1, 0)) + minus_one + Message(1, "") + Message(1, Number(1, 7));
  const std::string value = Message(1, "x") + Message(2, Message(1, Number(1, 1) + Message(2, shape)));
  const OnnxSummary found =
      SummariseOnnx(OnnxModel(Message(11, value) + Message(12, OnnxValue("y", 1, {1}))));
  EXPECT_THAT(*found.inputs[0].dims, ElementsAre(-1, -1, -1, 7));
}

TEST(OnnxPortsTest, EveryFileThatIsCutShortIsRefused) {
  const std::string whole =
      OnnxModel(Message(11, OnnxValue("x", 1, {2})) + Message(12, OnnxValue("y", 1, {3})));
  ASSERT_EQ(WhyNot(whole), "");
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_NE(WhyNot(whole.substr(0, bytes)), "") << bytes;
}

TEST(OnnxPortsTest, GraphsWithoutPortsOrWithFarTooManyAreRefused) {
  const std::string in = Message(11, OnnxValue("x", 1, {1}));
  const std::string out = Message(12, OnnxValue("y", 1, {1}));
  EXPECT_THAT(WhyNot(OnnxModel(in)), HasSubstr("has no outputs"));
  EXPECT_THAT(WhyNot(OnnxModel(out)), HasSubstr("has no inputs"));
  std::string many;
  for (int i = 0; i < 1025; ++i) many += in;
  EXPECT_THAT(WhyNot(OnnxModel(many + out)), HasSubstr("more than 1024 inputs"));
  many.clear();
  for (int i = 0; i < 1025; ++i) many += out;
  EXPECT_THAT(WhyNot(OnnxModel(in + many)), HasSubstr("more than 1024 outputs"));
  const std::string deep = Message(11, OnnxValue("x", 1, std::vector<int64_t>(65, 1)));
  EXPECT_THAT(WhyNot(OnnxModel(deep + out)), HasSubstr("more than 64 dimensions"));
}

TEST(OnnxPortsTest, OnlyOnnxLooksLikeOnnx) {
  EXPECT_TRUE(LooksLikeOnnx(OnnxModel(Message(11, OnnxValue("x", 1, {1})))));
  EXPECT_FALSE(LooksLikeOnnx("PK\x03\x04 a zip file"));
  // Safetensors whose header has as many bytes as ONNX's first field and its version would say.
  EXPECT_FALSE(LooksLikeOnnx(std::string("\x08\x08\0\0\0\0\0\0{}", 10)));
  EXPECT_FALSE(LooksLikeOnnx("\x08\x08"));
}

}  // namespace
}  // namespace saccade::models
