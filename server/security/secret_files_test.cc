#include "server/security/secret_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

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
    chmod(Path(name).c_str(), 0600);
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

TEST_F(SecretFilesTest, WhatOthersMayReadIsNoSecret) {
  const std::string path = Write("a", "secret");
  for (const mode_t mode : {0644, 0604, 0602, 0777}) {
    chmod(path.c_str(), mode);
    EXPECT_THAT(std::string(ReadSecretFile("--flag", path).status().message()),
                HasSubstr("is open to other users: its mode is 0"));
    EXPECT_TRUE(ReadPublicFile("--flag", path).ok());
  }
  for (const mode_t mode : {0600, 0640, 0400}) {
    chmod(path.c_str(), mode);
    EXPECT_TRUE(ReadSecretFile("--flag", path).ok());
  }
}

TEST_F(SecretFilesTest, ASecretThatKubernetesMountedMayHaveAnyMode) {
  // In memory, as Kubernetes mounts them.
  std::string name = "/dev/shm/saccade-secretsXXXXXX";
  const std::filesystem::path mount = mkdtemp(name.data());
  std::filesystem::create_directory(mount / "..2026");
  std::ofstream(mount / "..2026" / "tokens") << "secret";
  chmod((mount / "..2026" / "tokens").c_str(), 0644);
  std::filesystem::create_symlink("..data/tokens", mount / "tokens");
  std::filesystem::create_symlink("..2026", mount / "..data");
  EXPECT_EQ(ReadSecretFile("--flag", (mount / "tokens").string()).value(), "secret");
  std::ofstream(mount / "plain") << "secret";
  chmod((mount / "plain").c_str(), 0644);
  std::filesystem::remove(mount / "..data");
  EXPECT_FALSE(ReadSecretFile("--flag", (mount / "plain").string()).ok()) << "not mounted by Kubernetes";
  std::filesystem::remove_all(mount);
  // The same folder on a disk.
  std::filesystem::create_symlink("nowhere", folder_ / "..data");
  const std::string path = Write("a", "secret");
  chmod(path.c_str(), 0644);
  struct statfs system{};
  ASSERT_EQ(statfs(path.c_str(), &system), 0);
  EXPECT_EQ(ReadSecretFile("--flag", path).ok(), system.f_type == TMPFS_MAGIC);
}

TEST_F(SecretFilesTest, AChangeCountsOnceItRests) {
  SecretFiles files({Write("a", "one"), Path("b")});
  EXPECT_FALSE(files.HaveChanged());
  Write("a", "longer");
  EXPECT_FALSE(files.HaveChanged()) << "seen once alone";
  EXPECT_TRUE(files.HaveChanged());
  EXPECT_TRUE(files.HaveChanged()) << "not taken yet";
  files.MarkRead();
  EXPECT_FALSE(files.HaveChanged());
  Write("b", "new");
  EXPECT_FALSE(files.HaveChanged());
  Write("b", "newer");
  EXPECT_FALSE(files.HaveChanged()) << "still being written";
  EXPECT_TRUE(files.HaveChanged());
}

TEST_F(SecretFilesTest, ALinkThatLeadsElsewhereIsAChange) {
  std::filesystem::create_symlink(Write("first", "same"), folder_ / "link");
  SecretFiles files({Path("link")});
  std::filesystem::create_symlink(Write("second", "same"), folder_ / "next");
  std::filesystem::rename(folder_ / "next", folder_ / "link");
  EXPECT_FALSE(files.HaveChanged());
  EXPECT_TRUE(files.HaveChanged());
}

TEST_F(SecretFilesTest, AFailedReadIsRepeatedUntilItSucceeds) {
  SecretFiles files({Write("a", "one")});
  int reads = 0;
  absl::Status result = absl::InvalidArgumentError("broken");
  const auto look = [&] {
    files.ReadIfChanged(
        [&] {
          ++reads;
          return result;
        },
        "not reloaded");
    return reads;
  };
  EXPECT_EQ(look(), 0) << "unchanged";
  Write("a", "longer");
  EXPECT_EQ(look(), 0) << "may still be written";
  EXPECT_EQ(look(), 1);
  EXPECT_EQ(look(), 2) << "another file that it depends on may have been completed";
  result = absl::OkStatus();
  EXPECT_EQ(look(), 3);
  EXPECT_EQ(look(), 3) << "read";
}

TEST_F(SecretFilesTest, AFileThatVanishesAndReturnsUnchangedIsReadAgainAtMostOnce) {
  SecretFiles files({Write("a", "one")});
  std::filesystem::rename(Path("a"), Path("b"));
  EXPECT_FALSE(files.HaveChanged());
  EXPECT_TRUE(files.HaveChanged());
  std::filesystem::rename(Path("b"), Path("a"));
  files.HaveChanged();
  const bool changed = files.HaveChanged();
  if (changed) files.MarkRead();
  EXPECT_FALSE(files.HaveChanged());
}

TEST_F(SecretFilesTest, WipingLeavesAnEmptyString) {
  std::string secret = "a secret that is longer than the string's own buffer";
  const char* const bytes = secret.data();
  Wipe(secret);
  EXPECT_TRUE(secret.empty());
  EXPECT_EQ(secret.data(), bytes) << "reallocating would leave the secret in freed memory";
  Wipe(secret);
}

}  // namespace
}  // namespace saccade::server
