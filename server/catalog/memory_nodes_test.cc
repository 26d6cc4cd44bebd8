#include "server/catalog/memory_nodes.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

// Nodes with so many physical cores, each of which runs `threads_per_core` threads.
std::vector<MemoryNode> NodesOf(const std::vector<int>& cores, int threads_per_core) {
  std::vector<MemoryNode> nodes;
  int next = 0;
  for (const int of_node : cores) {
    MemoryNode node = {.processors = {}, .cores = of_node};
    for (int i = 0; i < of_node * threads_per_core; ++i) node.processors.push_back(next++);
    nodes.push_back(node);
  }
  return nodes;
}

TEST(MemoryNodesTest, APassTakesTheCoresOfANodeOrAllThatTheQuotaGrants) {
  const struct {
    int cores;
    std::vector<int> nodes;
    int threads_per_core;
    int expected;
  } rows[] = {
      // Without a quota.
      {16, {8, 8}, 1, 8},
      {16, {8, 8}, 2, 8},
      {64, {16, 16, 16, 16}, 2, 16},
      {12, {4, 8}, 1, 4},
      {2, {1, 1}, 1, 1},
      // A quota, or --cores, of fewer cores than a node has belongs to no node.
      {4, {32, 32}, 1, 4},
      {4, {16, 16, 16, 16}, 1, 4},
      {4, {16, 16}, 2, 4},
      {1, {32, 32}, 1, 1},
      // One of more cores than a node has.
      {12, {8, 8}, 2, 8},
      {100, {8, 8}, 2, 8},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(MaxCoresOfPass(row.cores, NodesOf(row.nodes, row.threads_per_core)), row.expected)
        << row.cores << " cores, " << row.nodes.size() << " nodes of " << row.nodes[0] << ", "
        << row.threads_per_core << " threads per core";
  }
}

TEST(MemoryNodesTest, InstancesFitOnANodeByItsPhysicalCores) {
  for (const int threads_per_core : {1, 2}) {
    const auto nodes = NodesOf({8, 8}, threads_per_core);
    const InstancesOnNodes two_halves = {.instances = 2, .threads = 4, .first_node = 1};
    EXPECT_THAT(NodeOfInstance(nodes, two_halves, 0), Optional(size_t{1}));
    EXPECT_THAT(NodeOfInstance(nodes, two_halves, 1), Optional(size_t{1}));
    const InstancesOnNodes two = {.instances = 2, .threads = 8, .first_node = 1};
    EXPECT_THAT(NodeOfInstance(nodes, two, 0), Optional(size_t{1}));
    EXPECT_THAT(NodeOfInstance(nodes, two, 1), Optional(size_t{0}))
        << "two threads of a core are no two cores";
    EXPECT_EQ(NodeOfInstance(nodes, {.instances = 1, .threads = 9}, 0), std::nullopt);
  }
}

TEST(MemoryNodesTest, OneNodeIsNoChoice) {
  EXPECT_EQ(NodeOfInstance(NodesOf({8}, 1), {.instances = 1, .threads = 1}, 0), std::nullopt);
  EXPECT_EQ(NodeOfInstance({}, {.instances = 1, .threads = 1}, 0), std::nullopt);
}

TEST(MemoryNodesTest, ThePhysicalCoresOfANodeAreRead) {
  const std::string root = absl::StrCat(::testing::TempDir(), "/memory_nodes");
  std::filesystem::remove_all(root);
  for (int processor = 0; processor < 8; ++processor) {
    const std::filesystem::path folder =
        absl::StrCat(root, "/sys/devices/system/cpu/cpu", processor, "/topology");
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "physical_package_id") << processor / 4 << "\n";
    std::ofstream(folder / "core_id") << processor % 4 / 2 << "\n";
  }
  const auto nodes = WithCores({{0, 1, 2, 3}, {4, 5, 6, 7}}, root);
  ASSERT_EQ(nodes.size(), 2);
  EXPECT_THAT(nodes[1].processors, ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(nodes[0].cores, 2);
  EXPECT_EQ(nodes[1].cores, 2);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace saccade::server
