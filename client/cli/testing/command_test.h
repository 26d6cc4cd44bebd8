// Fixture for tests of a command: a fake daemon and an empty folder.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "client/cli/testing/run_with.h"
#include "client/cpp/testing/fake_daemon.h"

namespace saccade::client {

class CommandTest : public ::testing::Test {
 protected:
  CommandTest()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                (std::string(::testing::UnitTest::GetInstance()->current_test_info()->test_suite_name()) +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~CommandTest() override { std::filesystem::remove_all(folder_); }

  std::string File(const std::string& name, const std::string& bytes) {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  static std::string Read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // Returns the output without its heading, which contains times.
  static std::string Lines(const RunResult& run) { return run.out.substr(run.out.find('\n') + 1); }

  RunResult RunCommand(const std::string& command, const std::vector<std::string>& arguments,
                       const std::string& input = "", bool color = false) {
    std::vector<std::string> all = {command, "--url", daemon_.url(), "--model", "net"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return RunWith(all, input, color);
  }

  const std::filesystem::path folder_;
  FakeDaemon daemon_;
};

}  // namespace saccade::client
