#include "server/core/usable_cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

// A folder that plays the system's files.
class UsableCoresTest : public ::testing::Test {
 protected:
  UsableCoresTest() { std::filesystem::remove_all(root_); }
  ~UsableCoresTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  void WriteTopology(int processor, int package, int core) {
    const std::string folder = absl::StrCat("/sys/devices/system/cpu/cpu", processor, "/topology/");
    Write(folder + "physical_package_id", absl::StrCat(package));
    Write(folder + "core_id", absl::StrCat(core));
  }
  CoreLimits Read(const std::vector<int>& processors) { return ReadCoreLimits(processors, root_); }
  int Usable(const std::vector<int>& processors) { return UsableCores(Read(processors)); }

  const std::string root_ = absl::StrCat(::testing::TempDir(), "/usable_cores");
};

TEST_F(UsableCoresTest, WithoutFilesAllProcessorsCount) {
  EXPECT_EQ(Usable({0, 1, 2}), 3);
  EXPECT_EQ(Read({0}).quota, std::nullopt);
  EXPECT_EQ(Usable({}), 1);
}

TEST_F(UsableCoresTest, ThreadsOfOneCoreCountOnce) {
  WriteTopology(0, 0, 0);
  WriteTopology(1, 0, 1);
  WriteTopology(2, 1, 0);
  WriteTopology(3, 0, 0);
  EXPECT_EQ(Usable({0, 1, 2, 3}), 3);
  EXPECT_EQ(Usable({0, 3}), 1);
  EXPECT_EQ(Usable({0, 1, 2, 3, 4}), 5) << "of processor 4 nothing is known";
}

TEST_F(UsableCoresTest, TheSmallestGroupCounts) {
  Write("/proc/self/cgroup", "0::/pod/container");
  Write("/sys/fs/cgroup/pod/container/cpu.max", "max 100000");
  EXPECT_EQ(Read({0, 1}).quota, std::nullopt);
  Write("/sys/fs/cgroup/pod/cpu.max", "300000 100000");
  EXPECT_EQ(Read({0, 1, 2, 3}).quota, 3);
  Write("/sys/fs/cgroup/pod/container/cpu.max", "150000 100000");
  EXPECT_EQ(Read({0, 1, 2, 3}).quota, 1.5);
  EXPECT_EQ(Usable({0, 1, 2, 3}), 2);
  EXPECT_EQ(Usable({0}), 1) << "the affinity is smaller";
}

TEST_F(UsableCoresTest, AContainerIsTheRootOfItsNamespace) {
  Write("/proc/self/cgroup", "0::/");
  Write("/sys/fs/cgroup/cpu.max", "50000 100000");
  EXPECT_EQ(Read({0, 1}).quota, 0.5);
  EXPECT_EQ(Usable({0, 1}), 1);
  Write("/proc/self/cgroup", "0::/../../other");
  EXPECT_EQ(Read({0, 1}).quota, 0.5);
}

TEST_F(UsableCoresTest, VersionOne) {
  Write("/proc/self/cgroup", "12:cpuset:/a\n4:cpu,cpuacct:/a/b\n0::/a");
  Write("/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1");
  Write("/sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000");
  EXPECT_EQ(Read({0, 1}).quota, std::nullopt);
  Write("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "200000");
  Write("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000");
  EXPECT_EQ(Read({0, 1}).quota, 2);
}

TEST_F(UsableCoresTest, NonsenseLimitsNothing) {
  Write("/proc/self/cgroup", "nothing\n0::/a");
  for (const char* text : {"", "0 100000", "-5 100000", "x y", "100000", "100000 0", "1 2 3"}) {
    Write("/sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(Read({0, 1}).quota, std::nullopt) << text;
    EXPECT_EQ(Usable({0, 1}), 2);
  }
}

TEST(AllowedProcessorsTest, FollowTheAffinity) {
  const std::vector<int> all = AllowedProcessors();
  ASSERT_FALSE(all.empty());
  std::thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(all.back(), &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
    EXPECT_EQ(AllowedProcessors(), std::vector<int>{all.back()});
    EXPECT_EQ(UsableCores(ReadCoreLimits(AllowedProcessors())), 1);
  }).join();
}

}  // namespace
}  // namespace saccade::server
