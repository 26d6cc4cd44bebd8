#include "server/catalog/file_digests.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/repository/testing/test_repository.h"

namespace saccade::server {
namespace {

class FileDigestsTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& file, const std::string& text) const {
    files_.Write(file, text);
    return (files_.path() / file).string();
  }

  const TestRepository files_;
  FileDigests digests_;
};

TEST_F(FileDigestsTest, CopiesHaveTheSameDigest) {
  const auto digest = digests_.Of({Write("a/1/m.onnx", "graph"), Write("a/1/weights/w.bin", "weights")});
  ASSERT_TRUE(digest);
  EXPECT_EQ(digest->size(), 64);
  EXPECT_EQ(digests_.Of({Write("b/7/other.onnx", "graph"), Write("b/7/weights/w.bin", "weights")}), digest);
  // What the graph refers to as weights/w.bin is another file.
  EXPECT_NE(digests_.Of({Write("c/1/m.onnx", "graph"), Write("c/1/w.bin", "weights")}), digest);
  EXPECT_NE(digests_.Of({Write("d/1/m.onnx", "graph"), Write("d/1/weights/w.bin", "weighty")}), digest);
  EXPECT_NE(digests_.Of({Write("e/1/m.onnx", "graphweights"), Write("e/1/weights/w.bin", "")}), digest);
  EXPECT_NE(digests_.Of({(files_.path() / "a/1/m.onnx").string()}), digest);
}

// The ending decides how a file is read.
TEST_F(FileDigestsTest, TheSameContentsUnderAnotherEndingDiffer) {
  const auto digest = digests_.Of({Write("model.pt", "program")});
  ASSERT_TRUE(digest);
  EXPECT_EQ(digests_.Of({Write("copy.pt", "program")}), digest);
  EXPECT_NE(digests_.Of({Write("model.pt2", "program")}), digest);
}

TEST_F(FileDigestsTest, FilesThatChangeAreReadAgain) {
  const std::string path = Write("model.pt", "program");
  const auto before = digests_.Of({path});
  ASSERT_TRUE(before);
  EXPECT_EQ(digests_.Of({path}), before);
  // As long, and under the same name.
  std::filesystem::rename(Write("new.pt", "PROGRAM"), path);
  const auto after = digests_.Of({path});
  ASSERT_TRUE(after);
  EXPECT_NE(after, before);
}

TEST_F(FileDigestsTest, WhatIsNoFileHasNoDigest) {
  const std::string path = Write("model.pt", "program");
  EXPECT_EQ(digests_.Of({files_.string()}), std::nullopt);
  EXPECT_EQ(digests_.Of({path, (files_.path() / "missing").string()}), std::nullopt);
  ASSERT_TRUE(digests_.Of({path}));
  std::filesystem::remove(path);
  EXPECT_EQ(digests_.Of({path}), std::nullopt);
}

}  // namespace
}  // namespace saccade::server
