#include "models/graphs/openvino/error_lines.h"

#include "gtest/gtest.h"

namespace saccade::models {
namespace {

TEST(ErrorLinesTest, LeavesOutPlacesInOpenVinosSources) {
  EXPECT_EQ(
      ErrorLines("Exception from src/inference/src/cpp/core.cpp:95:\n"
                 "Check 'conversion_result' failed at src/frontends/onnx/frontend/src/frontend.cpp:320:\n"
                 "FrontEnd API failed with OpConversionFailure:\nModel wasn't fully converted.\n\nSummary:\n"
                 "-- No conversion rule found for operations: acme.Frobnicate\n"),
      "Model wasn't fully converted.; -- No conversion rule found for operations: acme.Frobnicate");
}

TEST(ErrorLinesTest, KeepsWhatIsBeforeAPlace) {
  EXPECT_EQ(
      ErrorLines(
          "[CPU] Convolution node with name 'c' Check 'x.has_value()' failed at src/a.cpp:164:\noverflow\n"),
      "[CPU] Convolution node with name 'c'; overflow");
}

TEST(ErrorLinesTest, KeepsATextThatHasOnlyPlaces) {
  EXPECT_EQ(ErrorLines("Exception from src/a.cpp:1:\n"), "Exception from src/a.cpp:1");
  EXPECT_EQ(ErrorLines(""), "");
}

}  // namespace
}  // namespace saccade::models
