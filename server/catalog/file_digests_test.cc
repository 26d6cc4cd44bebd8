#include "server/catalog/file_digests.h"

#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/repository/checksums.h"
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
  int reads_ = 0;
  // The time after the last change of the files at which they are looked at.
  std::function<absl::Time()> now_ = [] { return absl::Now() + absl::Minutes(1); };
  FileDigests digests_{[this](const std::string& path) {
                         ++reads_;
                         return FileSum(path);
                       },
                       [this] { return now_(); }};
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

TEST_F(FileDigestsTest, AFileIsReadOnceForAllThatNeedIt) {
  const std::string weights = Write("weights", "1");
  const std::string sample = Write("sample", "2");
  EXPECT_TRUE(digests_.Of({weights, sample}));
  EXPECT_EQ(reads_, 2);
  EXPECT_EQ(digests_.SumOf(weights).value(), FileSum(weights).value());
  EXPECT_TRUE(digests_.Of({weights}));
  EXPECT_EQ(reads_, 2);
  Write("weights", "longer");
  EXPECT_EQ(digests_.SumOf(weights).value(), FileSum(weights).value());
  EXPECT_TRUE(digests_.Of({weights, sample}));
  EXPECT_EQ(reads_, 3);
}

// Another change within the tick of the file's times would not be seen.
TEST_F(FileDigestsTest, AFileThatWasJustWrittenIsReadAgain) {
  const std::string path = Write("weights", "1");
  struct stat file{};
  ASSERT_EQ(stat(path.c_str(), &file), 0);
  const absl::Time written = absl::TimeFromTimespec(file.st_ctim);
  const auto reads_after = [&](absl::Duration age) {
    now_ = [=] { return written + age; };
    const int before = reads_;
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(digests_.SumOf(path).ok());
    return reads_ - before;
  };
  EXPECT_EQ(reads_after(absl::Milliseconds(50)), 2);
  EXPECT_EQ(reads_after(absl::Seconds(2)), 1);
}

TEST_F(FileDigestsTest, AFileOfAClockThatIsAheadIsReadOnce) {
  now_ = [] { return absl::Now() - absl::Hours(1); };
  const std::string path = Write("weights", "1");
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(digests_.SumOf(path).ok());
  EXPECT_EQ(reads_, 1);
}

TEST_F(FileDigestsTest, AFileThatChangesWhileItIsReadHasNoSum) {
  const std::string path = Write("weights", "1");
  FileDigests digests([this](const std::string& read) {
    auto sum = FileSum(read);
    if (++reads_ == 1) Write("weights", "longer");
    return sum;
  });
  EXPECT_EQ(digests.SumOf(path).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(digests.SumOf(path).value(), FileSum(path).value()) << "it has the same contents now";
}

// A file that was read before may change while another one is read.
TEST_F(FileDigestsTest, FilesThatChangeWhileOneIsReadHaveNoDigest) {
  const std::string first = Write("first", "1");
  const std::string second = Write("second", "2");
  FileDigests digests([&](const std::string& read) {
    if (read == second) Write("first", "longer");
    return FileSum(read);
  });
  EXPECT_TRUE(digests.SumOf(first).ok());
  EXPECT_EQ(digests.Of({first, second}), std::nullopt);
}

TEST_F(FileDigestsTest, WhatIsNoFileHasNoDigest) {
  const std::string path = Write("model.pt", "program");
  EXPECT_EQ(digests_.Of({files_.string()}), std::nullopt);
  EXPECT_EQ(digests_.Of({path, (files_.path() / "missing").string()}), std::nullopt);
  ASSERT_TRUE(digests_.Of({path}));
  std::filesystem::remove(path);
  EXPECT_EQ(digests_.Of({path}), std::nullopt);
  EXPECT_EQ(digests_.SumOf(path).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace saccade::server
