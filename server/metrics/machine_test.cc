#include "server/metrics/machine.h"

#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/weights/format/file_contents.h"
#include "server/core/free_memory.h"

namespace saccade::server {
namespace {

TEST(ProcfsTest, CpuTicksLeaveIdleAndGuestOut) {
  const auto ticks = ParseCpuTicks("cpu  10 1 5 100 20 2 3 4 7 8\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
  ASSERT_TRUE(ticks.has_value());
  EXPECT_EQ(ticks->busy, 25);
  EXPECT_EQ(ticks->total, 145);
  EXPECT_FALSE(ParseCpuTicks("").has_value());
  EXPECT_FALSE(ParseCpuTicks("cpu 1 2 3\n").has_value());
  EXPECT_FALSE(ParseCpuTicks("cpu0 1 2 3 4 5 6 7 8\n").has_value());
}

TEST(ProcfsTest, MemoryIsInBytes) {
  const auto memory = ParseMemory("MemTotal:        1000 kB\nMemFree: 1 kB\nMemAvailable:     400 kB\n");
  ASSERT_TRUE(memory.has_value());
  EXPECT_EQ(memory->total_bytes, 1'024'000);
  EXPECT_EQ(memory->available_bytes, 409'600);
  EXPECT_FALSE(ParseMemory("MemTotal: 1000 kB\n").has_value());
}

TEST(ProcfsTest, ProcessNamesMayHoldBrackets) {
  const auto stat =
      ParseProcessStat("42 (a) S 1) S 1 2 3 4 5 6 7 8 9 10 140 150 16 17 18 19 20 21 2200 2300 24 25 26\n");
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->cpu_ticks, 290);
  EXPECT_EQ(stat->start_ticks, 2200);
  EXPECT_EQ(stat->virtual_bytes, 2300);
  EXPECT_EQ(stat->resident_pages, 24);
  EXPECT_FALSE(ParseProcessStat("42 (cut) S 1 2 3").has_value());
  EXPECT_FALSE(ParseProcessStat("").has_value());
}

TEST(ProcfsTest, BootTime) {
  EXPECT_EQ(ParseBootTime("cpu 1\nbtime 1700000000\nprocesses 4\n"), 1'700'000'000);
  EXPECT_FALSE(ParseBootTime("cpu 1\n").has_value());
}

TEST(MachineMetricsTest, ThisProcessIsMeasured) {
  prometheus::Registry registry;
  MachineMetrics machine(registry);
  machine.Update();
  std::map<std::string, double> values;
  std::istringstream lines(prometheus::TextSerializer().Serialize(registry.Collect()));
  for (std::string line; std::getline(lines, line);) {
    if (line[0] != '#') values[line.substr(0, line.find(' '))] = std::stod(line.substr(line.find(' ')));
  }
  EXPECT_GE(values.at("nv_cpu_utilization"), 0);
  EXPECT_LE(values.at("nv_cpu_utilization"), 1);
  EXPECT_GT(values.at("nv_cpu_memory_total_bytes"), 1 << 26);
  EXPECT_LT(values.at("nv_cpu_memory_used_bytes"), values.at("nv_cpu_memory_total_bytes"));
  EXPECT_GT(values.at("process_resident_memory_bytes"), 1 << 20);
  EXPECT_GE(values.at("process_virtual_memory_bytes"), values.at("process_resident_memory_bytes"));
  EXPECT_GE(values.at("process_cpu_seconds_total"), 0);
  EXPECT_GE(values.at("process_open_fds"), 3);
  EXPECT_GE(values.at("process_max_fds"), values.at("process_open_fds"));
  // Started before now, but after this test was written.
  EXPECT_GT(values.at("process_start_time_seconds"), 1.7e9);
  EXPECT_LE(values.at("process_start_time_seconds"), static_cast<double>(std::time(nullptr)) + 1);
}

// The processor time and the memory of decoding are in other processes.
TEST(MachineMetricsTest, TheHelpSaysThatWorkersAreLeftOut) {
  prometheus::Registry registry;
  MachineMetrics machine(registry);
  const std::string text = prometheus::TextSerializer().Serialize(registry.Collect());
  for (const char* name :
       {"process_cpu_seconds_total", "process_resident_memory_bytes", "process_virtual_memory_bytes",
        "process_open_fds", "saccade_memory_allocated_bytes"}) {
    const size_t help = text.find(std::string("# HELP ") + name);
    ASSERT_NE(help, std::string::npos) << name;
    const std::string line = text.substr(help, text.find('\n', help) - help);
    EXPECT_NE(line.find("without its decode workers' processes"), std::string::npos) << line;
  }
}

TEST(MachineMetricsTest, AnAllocationIsCountedUntilItIsFreed) {
  prometheus::Registry registry;
  MachineMetrics machine(registry);
  const auto allocated = [&] {
    machine.Update();
    const std::string text = prometheus::TextSerializer().Serialize(registry.Collect());
    const std::string name = "\nsaccade_memory_allocated_bytes ";
    return std::stod(text.substr(text.find(name) + name.size()));
  };
  if (AllocatedBytes() == 0) GTEST_SKIP() << "a sanitizer's allocator does not count";
  constexpr double kBytes = 64 << 20;
  const double before = allocated();
  auto block = std::make_unique<std::vector<char>>(64 << 20);
  EXPECT_NEAR(allocated(), before + kBytes, kBytes / 8);
  block.reset();
  EXPECT_NEAR(allocated(), before, kBytes / 8);
}

// Weights are read into memory that is not the allocator's.
TEST(MachineMetricsTest, AFileInMemoryIsCountedUntilItIsLetGo) {
  prometheus::Registry registry;
  MachineMetrics machine(registry);
  const auto allocated = [&] {
    machine.Update();
    const std::string text = prometheus::TextSerializer().Serialize(registry.Collect());
    const std::string name = "\nsaccade_memory_allocated_bytes ";
    return std::stod(text.substr(text.find(name) + name.size()));
  };
  constexpr double kBytes = 64 << 20;
  const std::string path = testing::TempDir() + "/machine_test." + std::to_string(getpid());
  std::ofstream(path).flush();
  std::filesystem::resize_file(path, 64 << 20);
  const double before = allocated();
  auto file = models::FileContents::Read(path, 64 << 20);
  EXPECT_NEAR(allocated(), before + kBytes, kBytes / 8);
  file->LetGo(file->bytes().first(32 << 20));
  EXPECT_NEAR(allocated(), before + kBytes / 2, kBytes / 8);
  file.reset();
  EXPECT_NEAR(allocated(), before, kBytes / 8);
  file = models::FileContents::Read(path, 64 << 20, [](models::Bytes) { return size_t{100}; });
  EXPECT_NEAR(allocated(), before, kBytes / 8) << "what is not read takes no memory";
  std::filesystem::remove(path);
}

TEST(MachineMetricsTest, AnOpenFileIsCounted) {
  prometheus::Registry registry;
  MachineMetrics machine(registry);
  const auto count = [&] {
    machine.Update();
    const std::string text = prometheus::TextSerializer().Serialize(registry.Collect());
    return std::stod(text.substr(text.find("\nprocess_open_fds ") + 18));
  };
  const double before = count();
  const int fd = dup(STDOUT_FILENO);
  EXPECT_EQ(count(), before + 1);
  close(fd);
  EXPECT_EQ(count(), before);
}

}  // namespace
}  // namespace saccade::server
