#include "server/shared_memory/shared_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

namespace saccade::server {
namespace {

class SharedFileTest : public testing::Test {
 protected:
  SharedFileTest() {
    std::string name = testing::TempDir() + "shared_fileXXXXXX";
    folder_ = mkdtemp(name.data());
    std::ofstream(folder_ + "/f") << "0123456789";
  }
  ~SharedFileTest() override { std::filesystem::remove_all(folder_); }

  static std::string Read(const SharedFile& file, uint64_t offset, size_t size) {
    std::string text(size, '?');
    return file.Read(offset, size, text.data()).ok() ? text : "error";
  }

  std::string folder_;
};

TEST_F(SharedFileTest, TheMovedFileIsTheOnlyOwner) {
  SharedFile first = SharedFile::Open(folder_, "/f").value();
  {
    const SharedFile second = std::move(first);
    EXPECT_EQ(Read(second, 0, 10), "0123456789");
  }
  const SharedFile third = SharedFile::Open(folder_, "f").value();
  EXPECT_EQ(third.Size().value(), 10U);
}

TEST_F(SharedFileTest, RangesEndWhereTheFileEnds) {
  const SharedFile file = SharedFile::Open(folder_, "f").value();
  EXPECT_EQ(Read(file, 9, 1), "9");
  EXPECT_EQ(Read(file, 10, 0), "");
  EXPECT_EQ(Read(file, 9, 2), "error");
  EXPECT_EQ(Read(file, 11, 1), "error");
  EXPECT_TRUE(file.Write(9, "x").ok());
  EXPECT_EQ(file.Write(9, "xy").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(file.Write(11, "").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(file.Size().value(), 10U) << "a write never extends the file";
  EXPECT_EQ(Read(file, 8, 2), "8x");
}

// The end of such a range is a small number again.
TEST_F(SharedFileTest, AnOffsetThatOverflowsIsAnError) {
  const SharedFile file = SharedFile::Open(folder_, "f").value();
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(file.Write(kMax, "abc").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Read(file, kMax, 3), "error");
  EXPECT_EQ(Read(file, 0, 10), "0123456789");
}

}  // namespace
}  // namespace saccade::server
