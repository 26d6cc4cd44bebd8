#include "server/protocols/rest/sample_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace saccade::server {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SampleFilesTest : public ::testing::Test {
 protected:
  SampleFilesTest() : folder_(fs::path(::testing::TempDir()) / ("samples_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~SampleFilesTest() override { fs::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return (folder_ / name).string();
  }

  const fs::path folder_;
};

std::vector<std::string> Names(const std::vector<SampleFile>& samples) {
  std::vector<std::string> names;
  for (const SampleFile& sample : samples) names.push_back(sample.name);
  return names;
}

TEST_F(SampleFilesTest, OnlyRegularFilesOfKnownTypesAndOfSomeSizeAreListed) {
  const std::vector<std::string> paths = {Write("a.PNG", "12345"),         Write("b.txt", "secret"),
                                          Write("c.svg", "<svg/>"),        Write("d.jpg", ""),
                                          Write("e.jpg", "123456"),        Write("f\xff.png", "1"),
                                          (folder_ / "gone.png").string(), Write("h.tif", "1")};
  ASSERT_EQ(mkfifo((folder_ / "i.png").c_str(), 0600), 0);
  ASSERT_EQ(symlink("b.txt", (folder_ / "j.png").c_str()), 0);
  fs::create_directory(folder_ / "k.png");
  std::vector<std::string> all = paths;
  for (const char* name : {"i.png", "j.png", "k.png"}) all.push_back((folder_ / name).string());
  const auto samples = SampleFiles(all, 5);
  ASSERT_THAT(Names(samples), ElementsAre("a.PNG", "h.tif"));
  EXPECT_EQ(samples[0].type, "image/png");
  EXPECT_EQ(samples[0].bytes, 5);
  EXPECT_EQ(*ReadSample(samples[0]), "12345");
}

TEST_F(SampleFilesTest, NamesAreThoseOfTheListAndNoPaths) {
  const auto samples = SampleFiles({Write("a.png", "1")}, 5);
  EXPECT_TRUE(FindSample(samples, "a.png").ok());
  for (const char* name : {"../a.png", "./a.png", "/etc/passwd", "", "A.png", "a.png/"}) {
    const auto found = FindSample(samples, name);
    EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound) << name;
  }
  EXPECT_LT(FindSample(samples, std::string(100'000, 'x')).status().message().size(), 1000);
}

TEST_F(SampleFilesTest, AFileThatIsReplacedIsNotRead) {
  const std::string path = Write("a.png", "12345");
  const auto samples = SampleFiles({path}, 5);
  ASSERT_EQ(samples.size(), 1);
  Write("a.png", "123456");
  EXPECT_THAT(ReadSample(samples[0]).status().message(), HasSubstr("has changed"));
  fs::remove(path);
  // A link to a file of the same size.
  const std::string secret = Write("secret", "54321");
  ASSERT_EQ(symlink(secret.c_str(), path.c_str()), 0);
  EXPECT_EQ(ReadSample(samples[0]).status().code(), absl::StatusCode::kUnavailable);
  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(ReadSample(samples[0]).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace saccade::server
