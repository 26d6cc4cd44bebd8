#include "models/graphs/graph_check.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/api/error.h"

namespace saccade::models {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string Message(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

// y = x, float32 [1].
std::string Identity() {
  const std::string type =
      Message(2, Message(1, std::string("\x08\x01", 2) + Message(2, Message(1, "\x08\x01"))));
  const std::string node = Message(1, "x") + Message(2, "y") + Message(4, "Identity");
  const std::string graph = Message(1, node) + Message(2, "g") + Message(11, Message(1, "x") + type) +
                            Message(12, Message(1, "y") + type);
  return std::string("\x08\x08", 2) + Message(7, graph) + Message(8, "\x10\x11");
}

class GraphCheckTest : public ::testing::Test {
 protected:
  GraphCheckTest() : path_(fs::path(::testing::TempDir()) / "graph_check.onnx") {
    std::ofstream(path_, std::ios::binary) << Identity();
  }
  ~GraphCheckTest() override { fs::remove(path_); }

  std::string Outcome(const GraphCheckLimits& limits) const {
    try {
      CheckGraphFile(path_, "", limits);
    } catch (const LoadError& error) {
      return error.what();
    }
    return "OK";
  }

  const fs::path path_;
};

TEST_F(GraphCheckTest, AGraphWithinTheLimitsPasses) { EXPECT_EQ(Outcome({}), "OK"); }

TEST_F(GraphCheckTest, ACheckThatTakesTooLongIsGivenUp) {
  EXPECT_THAT(Outcome({.seconds = 0}), HasSubstr("had not read and compiled the file after 0 s"));
}

TEST_F(GraphCheckTest, ACheckThatNeedsTooMuchMemoryFails) {
  // Enough for the process, but not for the libraries.
  EXPECT_NE(Outcome({.memory_bytes = 4096}), "OK");
  EXPECT_NE(Outcome({.memory_bytes = uint64_t{64} << 20}), "OK");
}

}  // namespace
}  // namespace saccade::models
