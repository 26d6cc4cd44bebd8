#include "server/core/physical_cores.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;

// A folder that plays the system's files.
class PhysicalCoresTest : public ::testing::Test {
 protected:
  PhysicalCoresTest() { std::filesystem::remove_all(root_); }
  ~PhysicalCoresTest() override { std::filesystem::remove_all(root_); }

  void Write(int processor, int package, int core) const {
    const std::filesystem::path folder =
        absl::StrCat(root_, "/sys/devices/system/cpu/cpu", processor, "/topology");
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "physical_package_id") << package << "\n";
    std::ofstream(folder / "core_id") << core << "\n";
  }

  const std::string root_ = absl::StrCat(::testing::TempDir(), "/physical_cores");
};

TEST_F(PhysicalCoresTest, AdjacentThreadsOfACore) {
  for (int processor = 0; processor < 4; ++processor) Write(processor, 0, processor / 2);
  EXPECT_THAT(ReadPhysicalCores({0, 1, 2, 3}, root_), ElementsAre(PhysicalCore{0, 1}, PhysicalCore{2, 3}));
  EXPECT_THAT(ReadPhysicalCores({1, 2}, root_), ElementsAre(PhysicalCore{1}, PhysicalCore{2}));
}

TEST_F(PhysicalCoresTest, ThreadsThatAreFarApart) {
  for (int processor = 0; processor < 4; ++processor) Write(processor, 0, processor % 2);
  EXPECT_THAT(ReadPhysicalCores({0, 1, 2, 3}, root_), ElementsAre(PhysicalCore{0, 2}, PhysicalCore{1, 3}));
}

TEST_F(PhysicalCoresTest, EachPackageNumbersItsCores) {
  for (int processor = 0; processor < 4; ++processor) Write(processor, processor / 2, processor % 2);
  EXPECT_EQ(ReadPhysicalCores({0, 1, 2, 3}, root_).size(), 4);
}

TEST_F(PhysicalCoresTest, WithoutFilesEachProcessorIsACore) {
  Write(0, 0, 0);
  Write(1, 0, 0);
  EXPECT_THAT(ReadPhysicalCores({0, 1, 2}, root_),
              ElementsAre(PhysicalCore{0}, PhysicalCore{1}, PhysicalCore{2}));
  EXPECT_TRUE(ReadPhysicalCores({}, root_).empty());
}

}  // namespace
}  // namespace saccade::server
