#include "server/lifecycle/attester_setup.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CodeFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/code_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& content) {
    const std::string path = folder_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << content;
    return path;
  }

  std::string folder_;
};

TEST_F(CodeFilesTest, PartsThatAreOpenedLaterCount) {
  const std::string program = Write("bin/saccaded", "a");
  const std::string kernels = Write("lib/libsaccade_kernels.so", "b");
  const std::string line = "7f0000000000-7f0000001000 r-xp 00000000 08:01 1 ";
  const auto files = [&] {
    std::istringstream maps(line + program + "\n" + line + "/usr/lib/libz.so\n" + line + kernels + "\n" +
                            line + "\n");
    return CodeFiles(program, maps);
  };
  EXPECT_THAT(files(), ElementsAre(program, kernels));
  const std::string worker = Write("bin/saccade-decode-worker", "c");
  const std::string openvino = Write("lib/libsaccade_openvino.so", "d");
  EXPECT_THAT(files(), ElementsAre(worker, program, kernels, openvino));
}

TEST_F(CodeFilesTest, TheDigestIsOfAllFiles) {
  const std::string one = Write("1", "ab"), two = Write("2", "c");
  const auto digest = CodeDigest({one, two});
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_EQ(*digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(CodeFilesTest, AFileThatCannotBeReadIsAnError) {
  const std::string one = Write("1", "ab");
  const absl::Status gone = CodeDigest({one, folder_ + "/gone"}).status();
  EXPECT_THAT(std::string(gone.message()), AllOf(HasSubstr("--attest-key"), HasSubstr(folder_ + "/gone")));
  EXPECT_FALSE(CodeDigest({folder_}).ok()) << "a folder is no file";
}

}  // namespace
}  // namespace saccade::server
