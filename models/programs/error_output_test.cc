#include "models/programs/error_output.h"

#include <iostream>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::models {
namespace {

using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

TEST(ErrorOutputTest, KeepsWhatIsTaken) {
  CaptureStderr();
  {
    ErrorOutput output;
    std::cerr << "Error: " << 7 << 'x' << std::endl;
    EXPECT_EQ(output.Take(), "Error: 7x");
    EXPECT_EQ(output.Take(), "");
  }
  EXPECT_EQ(GetCapturedStderr(), "");
}

TEST(ErrorOutputTest, WritesWhatIsNotTaken) {
  CaptureStderr();
  {
    const ErrorOutput output;
    std::cerr << "remark\n";
  }
  std::cerr << "after\n";
  EXPECT_EQ(GetCapturedStderr(), "remark\nafter\n");
}

TEST(ErrorOutputTest, IsOfItsThread) {
  CaptureStderr();
  ErrorOutput output;
  std::thread([] { std::cerr << "another\n"; }).join();
  std::cerr << "own\n";
  EXPECT_EQ(output.Take(), "own");
  EXPECT_EQ(GetCapturedStderr(), "another\n");
}

TEST(ErrorOutputTest, AnInnerOneKeepsItsPartAndReturnsTheRest) {
  ErrorOutput outer;
  {
    ErrorOutput inner;
    std::cerr << "taken\n";
    EXPECT_EQ(inner.Take(), "taken");
    std::cerr << "left\n";
  }
  EXPECT_EQ(outer.Take(), "left");
}

TEST(ErrorOutputTest, IsBounded) {
  ErrorOutput output;
  for (int i = 0; i < 1000; ++i) std::cerr << std::string(100, 'x');
  EXPECT_EQ(output.Take().size(), 4096u);
}

}  // namespace
}  // namespace saccade::models
