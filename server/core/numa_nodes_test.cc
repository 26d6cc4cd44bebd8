#include "server/core/numa_nodes.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;

// A file system with the files of a made-up machine.
class NumaNodesTest : public ::testing::Test {
 protected:
  NumaNodesTest() {
    std::string name = (std::filesystem::temp_directory_path() / "saccade_nodes_XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~NumaNodesTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  void Node(int number, const std::string& processors) const {
    const std::string folder = absl::StrCat(root_, "/sys/devices/system/node/node", number);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/cpulist") << processors << "\n";
  }

  std::string root_;
};

TEST_F(NumaNodesTest, SortsTheProcessorsByNode) {
  Node(0, "0-3,8-11");
  Node(1, "4-7,12-15");
  EXPECT_THAT(ReadNumaNodes({0, 1, 2, 3, 4, 5, 6, 7}, root_),
              ElementsAre(NumaNode{0, 1, 2, 3}, NumaNode{4, 5, 6, 7}));
}

TEST_F(NumaNodesTest, OnlyWhatMayBeUsedCounts) {
  Node(0, "0-3");
  Node(1, "4-7");
  EXPECT_THAT(ReadNumaNodes({3, 5, 7}, root_), ElementsAre(NumaNode{3}, NumaNode{5, 7}));
  EXPECT_THAT(ReadNumaNodes({4, 6}, root_), ElementsAre(NumaNode{4, 6}));
}

TEST_F(NumaNodesTest, NodesWithoutProcessorsAndOtherFilesAreLeftOut) {
  Node(0, "0-1");
  // Memory of an accelerator, or of a module on a bus.
  Node(1, "");
  Node(10, "2-3");
  std::filesystem::create_directories(root_ + "/sys/devices/system/node/power");
  std::ofstream(root_ + "/sys/devices/system/node/online") << "0-1\n";
  EXPECT_THAT(ReadNumaNodes({0, 1, 2, 3}, root_), ElementsAre(NumaNode{0, 1}, NumaNode{2, 3}));
}

TEST_F(NumaNodesTest, AMachineThatDoesNotTellIsOneNode) {
  EXPECT_THAT(ReadNumaNodes({0, 1}, root_), ElementsAre(NumaNode{0, 1}));
  Node(0, "0");
  EXPECT_THAT(ReadNumaNodes({0, 1}, root_), ElementsAre(NumaNode{0, 1})) << "where is 1?";
  Node(1, "0-1");
  EXPECT_THAT(ReadNumaNodes({0, 1}, root_), ElementsAre(NumaNode{0, 1})) << "where is 0?";
}

TEST_F(NumaNodesTest, NonsenseIsOneNode) {
  for (const char* const text : {"0-", "-1", "0-1-2", "a", "1-0", "0-99999999", "0 1"}) {
    Node(0, text);
    EXPECT_THAT(ReadNumaNodes({0, 1}, root_), ElementsAre(NumaNode{0, 1})) << text;
  }
}

}  // namespace
}  // namespace saccade::server
