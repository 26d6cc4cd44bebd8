#include "server/capture/capture_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "server/capture/record_format.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

class CaptureFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/capture_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  std::unique_ptr<CaptureFolder> Open(int64_t max_bytes = 1000, int64_t segment_bytes = 100) {
    auto folder = CaptureFolder::Open({.path = path_ + "/calls",
                                       .max_bytes = max_bytes,
                                       .max_age = absl::Hours(1),
                                       .segment_bytes = segment_bytes,
                                       .segment_age = absl::Minutes(5)},
                                      kNow);
    EXPECT_TRUE(folder.ok()) << folder.status();
    return *std::move(folder);
  }

  std::vector<std::filesystem::path> Segments() const {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(path_ + "/calls")) {
      if (entry.path().extension() == ".saccade") paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  }
  static std::string Read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  int64_t BytesOnDisk() const {
    int64_t bytes = 0;
    for (const auto& path : Segments()) bytes += static_cast<int64_t>(std::filesystem::file_size(path));
    return bytes;
  }

  std::string path_;
};

TEST_F(CaptureFolderTest, FramesFollowTheMagicInAPrivateFile) {
  const auto folder = Open();
  ASSERT_TRUE(folder->Write("one", kNow).ok());
  ASSERT_TRUE(folder->Write("two", kNow).ok());
  const auto segments = Segments();
  ASSERT_EQ(segments.size(), 1);
  EXPECT_EQ(Read(segments[0]), std::string(kSegmentMagic) + "onetwo");
  struct stat facts = {};
  ASSERT_EQ(stat(segments[0].c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600);
  ASSERT_EQ(stat((path_ + "/calls").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700);
}

TEST_F(CaptureFolderTest, TheOldestAreDeletedToKeepTheBound) {
  const auto folder = Open(/*max_bytes=*/500, /*segment_bytes=*/100);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(
        folder->Write(std::string(40, static_cast<char>('a' + i % 26)), kNow + absl::Seconds(i)).ok());
    EXPECT_LE(folder->bytes(), 500);
    EXPECT_EQ(folder->bytes(), BytesOnDisk());
  }
  EXPECT_GE(Segments().size(), 3);
  EXPECT_EQ(Read(Segments().back()).back(), 'a' + 99 % 26);
}

TEST_F(CaptureFolderTest, SegmentsOfAnEarlierRunCountToo) {
  {
    const auto folder = Open();
    ASSERT_TRUE(folder->Write(std::string(70, 'x'), kNow).ok());
  }
  const auto folder = Open(/*max_bytes=*/200);
  EXPECT_EQ(folder->bytes(), 70 + static_cast<int64_t>(kSegmentMagic.size()));
  ASSERT_TRUE(folder->Write(std::string(100, 'y'), kNow + absl::Seconds(1)).ok());
  EXPECT_EQ(Segments().size(), 1);
}

TEST_F(CaptureFolderTest, OldSegmentsAreDeletedAndOthersAreNot) {
  const auto folder = Open();
  ASSERT_TRUE(folder->Write("old", kNow).ok());
  ASSERT_TRUE(folder->Write("new", kNow + absl::Minutes(40)).ok());
  ASSERT_EQ(Segments().size(), 2);
  folder->Sweep(kNow + absl::Minutes(61));
  ASSERT_EQ(Segments().size(), 1);
  EXPECT_THAT(Read(Segments()[0]), HasSubstr("new"));
  folder->Sweep(kNow + absl::Minutes(101));
  EXPECT_TRUE(Segments().empty());
  EXPECT_EQ(folder->bytes(), 0);
}

TEST_F(CaptureFolderTest, FilesThatAreNoSegmentsStay) {
  std::filesystem::create_directory(path_ + "/calls");
  std::ofstream(path_ + "/calls/notes.txt") << std::string(2000, 'n');
  const auto folder = Open();
  EXPECT_EQ(folder->bytes(), 0);
  ASSERT_TRUE(folder->Write("one", kNow).ok());
  folder->Sweep(kNow + absl::Hours(100));
  EXPECT_TRUE(std::filesystem::exists(path_ + "/calls/notes.txt"));
}

TEST_F(CaptureFolderTest, AFrameAboveTheBoundIsRejectedAndNothingIsDeleted) {
  const auto folder = Open();
  ASSERT_TRUE(folder->Write("one", kNow).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(folder->Write(std::string(2000, 'x'), kNow)));
  EXPECT_EQ(Segments().size(), 1);
}

TEST_F(CaptureFolderTest, AFileSystemThatTakesNoMoreLosesTheFrameAlone) {
  const auto folder = Open(/*max_bytes=*/100'000, /*segment_bytes=*/100'000);
  ASSERT_TRUE(folder->Write("whole", kNow).ok());
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status failed = folder->Write(std::string(5000, 'x'), kNow);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(absl::IsUnavailable(failed));
  EXPECT_THAT(failed.message(), HasSubstr("cannot be written: File too large"));
  EXPECT_EQ(Read(Segments()[0]), std::string(kSegmentMagic) + "whole");
  ASSERT_TRUE(folder->Write("again", kNow + absl::Seconds(1)).ok());
  ASSERT_EQ(Segments().size(), 2);
  EXPECT_EQ(folder->bytes(), BytesOnDisk());
}

TEST_F(CaptureFolderTest, AFolderHasOneDaemon) {
  const auto folder = Open();
  const auto second = CaptureFolder::Open({.path = path_ + "/calls", .max_bytes = 1000}, kNow);
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status()));
  EXPECT_THAT(second.status().message(), HasSubstr("is written by another daemon"));
}

TEST_F(CaptureFolderTest, AFolderThatCannotBeMadeIsAnError) {
  std::ofstream(path_ + "/file") << "no folder";
  const auto in_file = CaptureFolder::Open({.path = path_ + "/file", .max_bytes = 1000}, kNow);
  EXPECT_THAT(in_file.status().message(), HasSubstr("expected a folder"));
  const auto below = CaptureFolder::Open({.path = path_ + "/no/where", .max_bytes = 1000}, kNow);
  EXPECT_THAT(below.status().message(), HasSubstr("cannot be created: No such file or directory"));
}

}  // namespace
}  // namespace saccade::server
