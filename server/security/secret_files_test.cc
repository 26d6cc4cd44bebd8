#include "server/security/secret_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace saccade::server {
namespace {

using testing::HasSubstr;

class SecretFilesTest : public testing::Test {
 protected:
  SecretFilesTest() {
    std::string name = testing::TempDir() + "secretsXXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~SecretFilesTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
    return Path(name);
  }

  std::filesystem::path folder_;
};

TEST_F(SecretFilesTest, ReadsAWholeFile) {
  EXPECT_EQ(ReadSecretFile("--flag", Write("a", "secret")).value(), "secret");
}

TEST_F(SecretFilesTest, TellsWhatCannotBeRead) {
  const auto said = [](const std::string& path) {
    return std::string(ReadSecretFile("--flag", path).status().message());
  };
  EXPECT_THAT(said(Path("nowhere")), HasSubstr("--flag " + Path("nowhere")));
  EXPECT_THAT(said(Path("nowhere")), HasSubstr("No such file"));
  EXPECT_THAT(said(folder_.string()), HasSubstr("is not a regular file"));
  EXPECT_THAT(said(Write("large", std::string(kMaxSecretBytes + 1, 'x'))),
              HasSubstr("larger than 1048576 bytes"));
  EXPECT_TRUE(ReadSecretFile("--flag", Write("full", std::string(kMaxSecretBytes, 'x'))).ok());
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(said(Path("pipe")), HasSubstr("is not a regular file"));
}

TEST_F(SecretFilesTest, AChangeCountsOnceItRests) {
  SecretFiles files({Write("a", "one"), Path("b")});
  EXPECT_FALSE(files.Look());
  Write("a", "longer");
  EXPECT_FALSE(files.Look()) << "seen once alone";
  EXPECT_TRUE(files.Look());
  EXPECT_TRUE(files.Look()) << "not taken yet";
  files.Taken();
  EXPECT_FALSE(files.Look());
  Write("b", "new");
  EXPECT_FALSE(files.Look());
  Write("b", "newer");
  EXPECT_FALSE(files.Look()) << "still being written";
  EXPECT_TRUE(files.Look());
}

TEST_F(SecretFilesTest, ALinkThatLeadsElsewhereIsAChange) {
  std::filesystem::create_symlink(Write("first", "same"), folder_ / "link");
  SecretFiles files({Path("link")});
  std::filesystem::create_symlink(Write("second", "same"), folder_ / "next");
  std::filesystem::rename(folder_ / "next", folder_ / "link");
  EXPECT_FALSE(files.Look());
  EXPECT_TRUE(files.Look());
}

}  // namespace
}  // namespace saccade::server
