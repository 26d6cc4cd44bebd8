#include "models/graphs/onnx_file.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/api/error.h"
#include "models/graphs/testing/onnx_bytes.h"

namespace saccade::models {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Message;
using testing::Number;
using testing::OnnxModel;
using ::testing::SizeIs;
using testing::Varint;

std::string Entry(const std::string& key, const std::string& value) {
  return Message(13, Message(1, key) + Message(2, value));
}

std::string External(const std::string& location) {
  return Message(8, "w") + Entry("location", location) + Entry("offset", "16") + Entry("length", "32");
}

std::string Refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const LoadError& error) {
    return error.what();
  }
  return "";
}

std::string WhyNot(const std::string& file) {
  return Refusal([&] { LookThroughOnnx(file); });
}

TEST(OnnxFileTest, ExternalDataIsFoundWhereverATensorMayBe) {
  const std::string tensor = External("data.bin");
  EXPECT_THAT(LookThroughOnnx(OnnxModel(Message(5, Message(8, "w")))), IsEmpty());
  // An initializer, and the values of a sparse one.
  EXPECT_THAT(LookThroughOnnx(OnnxModel(Message(5, tensor) + Message(15, Message(1, tensor)))), SizeIs(2));
  // Attributes of a node: a tensor, tensors, a graph, graphs, sparse tensors.
  for (const uint64_t number : {5, 10}) {
    const std::string node = Message(5, Message(number, tensor));
    EXPECT_THAT(LookThroughOnnx(OnnxModel(Message(1, node))), SizeIs(1)) << number;
  }
  for (const uint64_t number : {6, 11}) {
    const std::string node = Message(5, Message(number, Message(5, tensor)));
    EXPECT_THAT(LookThroughOnnx(OnnxModel(Message(1, node))), SizeIs(1)) << number;
  }
  for (const uint64_t number : {22, 23}) {
    const std::string node = Message(5, Message(number, Message(2, tensor)));
    EXPECT_THAT(LookThroughOnnx(OnnxModel(Message(1, node))), SizeIs(1)) << number;
  }
  // The default value of a function's attribute.
  EXPECT_THAT(LookThroughOnnx(OnnxModel("") + Message(25, Message(11, Message(5, tensor)))), SizeIs(1));
  // A function's node.
  const auto found = LookThroughOnnx(OnnxModel("") + Message(25, Message(7, Message(5, Message(5, tensor)))));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].tensor, "w");
  EXPECT_EQ(found[0].location, "data.bin");
  EXPECT_EQ(found[0].offset, 16U);
  EXPECT_EQ(found[0].length, 32U);
}

TEST(OnnxFileTest, EveryFileThatIsCutShortIsRefused) {
  const std::string whole = OnnxModel(Message(5, External("data.bin")) + Message(2, "name"));
  ASSERT_THAT(LookThroughOnnx(whole), SizeIs(1));
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_NE(WhyNot(whole.substr(0, bytes)), "") << bytes;
  EXPECT_THAT(WhyNot(whole.substr(0, whole.size() - 1)),
              HasSubstr("cut short or damaged: the model says that"));
}

TEST(OnnxFileTest, OtherFilesAreRefused) {
  EXPECT_THAT(WhyNot("PK\x03\x04 zip"), HasSubstr("cut short or damaged"));
  EXPECT_THAT(WhyNot(Message(2, "producer")), HasSubstr("it has no graph"));
  EXPECT_THAT(WhyNot(std::string("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12)),
              HasSubstr("more than ten bytes"));
  EXPECT_THAT(WhyNot(std::string("\x00\x01", 2)), HasSubstr("a field without a number"));
}

TEST(OnnxFileTest, GraphsThatNestTooDeeplyAreRefused) {
  std::string graph;
  for (int depth = 0; depth < 100; ++depth) graph = Message(1, Message(5, Message(6, graph)));
  EXPECT_THAT(WhyNot(OnnxModel(graph)), HasSubstr("more than 32 deep"));
}

TEST(OnnxFileTest, AnOffsetThatIsNoNumberIsRefused) {
  const std::string tensor = Message(8, "w") + Entry("location", "a") + Entry("offset", "-1");
  EXPECT_THAT(WhyNot(OnnxModel(Message(5, tensor))),
              HasSubstr("has offset '-1', expected a number of bytes"));
}

TEST(OnnxFileTest, SeveralLocationsAreRefused) {
  const std::string tensor = Message(8, "w") + Entry("location", "a") + Entry("location", "../b");
  EXPECT_THAT(WhyNot(OnnxModel(Message(5, tensor))), HasSubstr("has several locations: 'a' and '../b'"));
}

// A number in place of a text: protobuf keeps the text.
TEST(OnnxFileTest, AFieldOfAnotherKindHidesNoLocation) {
  const std::string memory = Message(1, "location") + Message(2, "*/_ORT_MEM_ADDR_/*");
  for (const uint64_t number : {1, 2}) {
    const std::string hidden = Message(13, memory + Number(number, 0));
    const auto found = LookThroughOnnx(OnnxModel(Message(5, Message(8, "w") + hidden)));
    ASSERT_THAT(found, SizeIs(1)) << number;
    EXPECT_EQ(found[0].location, "*/_ORT_MEM_ADDR_/*") << number;
    const std::string both = Message(8, "w") + Entry("location", "a") + hidden;
    EXPECT_THAT(WhyNot(OnnxModel(Message(5, both))), HasSubstr("has several locations")) << number;
  }
}

TEST(OnnxFileTest, ATagOfMoreThan32BitsIsRefused) {
  const std::string entry = Message(1, "location") + Message(2, "*/_ORT_MEM_ADDR_/*");
  // Protobuf reads this as field 13, the external data.
  const std::string hidden = Varint(106 + (uint64_t{1} << 32)) + Varint(entry.size()) + entry;
  EXPECT_THAT(WhyNot(OnnxModel(Message(5, Message(8, "w") + hidden))),
              HasSubstr("a tensor has a field whose number and kind take more than 32 bits"));
}

class ExternalDataTest : public ::testing::Test {
 protected:
  ExternalDataTest() : root_(fs::path(::testing::TempDir()) / "external"), folder_(root_ / "1") {
    fs::remove_all(root_);
    fs::create_directories(folder_ / "sub");
    std::ofstream(folder_ / "data.bin") << std::string(48, 'x');
    std::ofstream(folder_ / "sub" / "data.bin") << std::string(48, 'x');
    std::ofstream(root_ / "secret") << std::string(48, 'x');
  }
  ~ExternalDataTest() override { fs::remove_all(root_); }

  std::string WhyNotAt(const std::string& location, uint64_t offset = 0, uint64_t length = 0) const {
    return Refusal([&] {
      CheckExternalData({.tensor = "w", .location = location, .offset = offset, .length = length}, folder_);
    });
  }

  const fs::path root_;
  const fs::path folder_;
};

TEST_F(ExternalDataTest, FilesInTheFolderAreTaken) {
  EXPECT_EQ(WhyNotAt("data.bin"), "");
  EXPECT_EQ(WhyNotAt("./data.bin", 16, 32), "");
  EXPECT_EQ(WhyNotAt("sub/data.bin"), "");
}

TEST_F(ExternalDataTest, PathsThatChecksumsDoNotCoverAreRefused) {
  std::ofstream(folder_ / ".data.bin") << std::string(48, 'x');
  fs::create_directory(folder_ / ".sub");
  std::ofstream(folder_ / ".sub" / "data.bin") << std::string(48, 'x');
  for (const char* location : {".data.bin", "./.data.bin", ".sub/data.bin", "sub/../data.bin"})
    EXPECT_THAT(WhyNotAt(location), HasSubstr("a path with a hidden name or '..'")) << location;
  // The folder ..data of a volume of Kubernetes: the name in the graph is not hidden.
  fs::create_directory_symlink(".sub", folder_ / "..data");
  fs::create_symlink("..data/data.bin", folder_ / "mounted.bin");
  EXPECT_EQ(WhyNotAt("mounted.bin"), "");
}

TEST_F(ExternalDataTest, FilesElsewhereAreRefused) {
  EXPECT_THAT(WhyNotAt("../secret"), HasSubstr("outside of the model's version directory"));
  EXPECT_THAT(WhyNotAt("sub/../../secret"), HasSubstr("outside"));
  EXPECT_THAT(WhyNotAt(root_ / "secret"), HasSubstr("outside"));
  EXPECT_THAT(WhyNotAt("/etc/hostname"), HasSubstr("outside"));
  fs::create_symlink(root_ / "secret", folder_ / "link.bin");
  EXPECT_THAT(WhyNotAt("link.bin"), HasSubstr("outside"));
  fs::create_directory_symlink(root_, folder_ / "up");
  EXPECT_THAT(WhyNotAt("up/secret"), HasSubstr("outside"));
  fs::create_symlink("data.bin", folder_ / "inner.bin");
  EXPECT_EQ(WhyNotAt("inner.bin"), "");
}

TEST_F(ExternalDataTest, NoLocationIsAnAddressInMemory) {
  fs::create_directories(folder_ / "*" / "_ORT_MEM_ADDR_");
  std::ofstream(folder_ / "*" / "_ORT_MEM_ADDR_" / "*") << std::string(48, 'x');
  EXPECT_THAT(WhyNotAt("*/_ORT_MEM_ADDR_/*", 16, 32), HasSubstr("reads memory and no file"));
}

TEST_F(ExternalDataTest, MissingAndShortFilesAreRefused) {
  EXPECT_THAT(WhyNotAt("none.bin"), HasSubstr("missing or empty"));
  EXPECT_THAT(WhyNotAt("sub"), HasSubstr("missing or empty"));
  EXPECT_THAT(WhyNotAt(""), HasSubstr("has no location"));
  EXPECT_THAT(WhyNotAt(std::string("data.bin\0x", 10)), HasSubstr("has no location"));
  EXPECT_THAT(WhyNotAt("data.bin", 17, 32), HasSubstr("at bytes 17 to 49 of 'data.bin', which has 48"));
  EXPECT_THAT(WhyNotAt("data.bin", ~uint64_t{0}, 32), HasSubstr("cut short"));
}

}  // namespace
}  // namespace saccade::models
