#include "models/graphs/onnx_index.h"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/api/error.h"
#include "models/graphs/onnx_ports.h"
#include "models/graphs/testing/onnx_bytes.h"

namespace saccade::models {
namespace {

using ::testing::HasSubstr;
using testing::Message;
using testing::Number;
using testing::OnnxModel;
using testing::OnnxValue;
using ::testing::SizeIs;
using testing::Varint;

constexpr int64_t kMaxBytes = int64_t{2} << 30;

class OnnxIndexTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  void Write(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

  std::string WhyNot() const {
    try {
      SummariseOnnx(ReadOnnxIndex(path_, kMaxBytes));
    } catch (const LoadError& error) {
      return error.what();
    }
    return "";
  }

  const std::string path_ = ::testing::TempDir() + "/onnx_index." + std::to_string(getpid());
};

TEST_F(OnnxIndexTest, HasAllThatASummaryNeeds) {
  const std::string node = Message(1, Message(1, "x") + Message(4, "Relu"));
  const std::string initializer =
      Message(5, Number(1, 3) + Message(4, std::string(10'000, 'v')) + Message(8, "w") + Number(2, 1));
  const std::string graph = node + initializer + Message(11, OnnxValue("x", 1, {-1, 300})) +
                            Message(11, OnnxValue("w", 1, {3})) + Message(12, OnnxValue("y", 10, {-1, 4}));
  const std::string fixed = Varint(100 << 3 | 5) + "four" + Varint(101 << 3 | 1) + "of eight";
  Write(fixed + Message(2, "pytorch") + Message(3, "2.9") + OnnxModel(graph) + Message(8, Number(2, 17)));
  const std::string index = ReadOnnxIndex(path_, kMaxBytes);
  EXPECT_LT(index.size(), 200U);
  const OnnxSummary found = SummariseOnnx(index);
  EXPECT_EQ(found.producer, "pytorch 2.9");
  EXPECT_EQ(found.opset, 17U);
  ASSERT_THAT(found.inputs, SizeIs(1));
  EXPECT_EQ(found.inputs[0].name, "x");
  EXPECT_EQ(DescribePort(found.inputs[0]), "FP32 [-1,300]");
  ASSERT_THAT(found.outputs, SizeIs(1));
  EXPECT_EQ(DescribePort(found.outputs[0]), "FP16 [-1,4]");
}

// The bytes that this process has read; -1 if the system does not say.
int64_t BytesRead() {
  std::ifstream file("/proc/self/io");
  std::string name;
  int64_t value = -1;
  return file >> name >> value && name == "rchar:" ? value : -1;
}

TEST_F(OnnxIndexTest, TheValuesOfTensorsAreNotRead) {
  if (BytesRead() < 0) GTEST_SKIP() << "this system does not count the bytes that are read";
  constexpr uint64_t kValues = uint64_t{1} << 30;
  const std::string tensor = Message(8, "w") + Varint(9 << 3 | 2) + Varint(kValues);
  const std::string before = Varint(5 << 3 | 2) + Varint(tensor.size() + kValues) + tensor;
  const std::string after = Message(11, OnnxValue("x", 1, {4})) + Message(12, OnnxValue("y", 1, {4}));
  const std::string start = Varint(7 << 3 | 2) + Varint(before.size() + kValues + after.size()) + before;
  Write(start);
  // A hole in place of the values.
  std::filesystem::resize_file(path_, start.size() + kValues);
  std::ofstream(path_, std::ios::binary | std::ios::app) << after;
  const int64_t read_before = BytesRead();
  const OnnxSummary found = SummariseOnnx(ReadOnnxIndex(path_, kMaxBytes));
  EXPECT_LT(BytesRead() - read_before, 1 << 20);
  ASSERT_THAT(found.inputs, SizeIs(1));
  EXPECT_EQ(found.inputs[0].name, "x");
}

TEST_F(OnnxIndexTest, ADamagedFileIsRefusedInTheWordsOfTheWholeOne) {
  const std::string graph = Message(5, Message(9, std::string(300, 'v')) + Message(8, "w")) +
                            Message(11, OnnxValue("x", 1, {4})) + Message(12, OnnxValue("y", 1, {4}));
  const std::string whole = OnnxModel(graph);
  for (size_t size = 1; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    Write(cut);
    std::string expected;
    try {
      SummariseOnnx(cut);
    } catch (const LoadError& error) {
      expected = error.what();
    }
    EXPECT_EQ(WhyNot(), expected) << size;
  }
  Write(OnnxModel(Varint(5 << 3 | 3)));
  EXPECT_THAT(WhyNot(), HasSubstr("a graph has a field of an unknown kind"));
  Write("");
  EXPECT_THAT(WhyNot(), HasSubstr("is empty"));
  std::filesystem::remove(path_);
  EXPECT_THAT(WhyNot(), HasSubstr("cannot open"));
}

}  // namespace
}  // namespace saccade::models
