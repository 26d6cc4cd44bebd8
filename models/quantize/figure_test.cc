#include "models/quantize/figure.h"

#include <gtest/gtest.h>

namespace saccade::models {
namespace {

TEST(FigureTest, TheLossIsAShareOfTheFigureInFloat32) {
  EXPECT_DOUBLE_EQ(FigureLoss(/*is_error=*/false, 0.8, 0.6), 0.25);
  EXPECT_DOUBLE_EQ(FigureLoss(/*is_error=*/false, 0.5, 0.75), -0.5);
  EXPECT_DOUBLE_EQ(FigureLoss(/*is_error=*/true, 2, 2.5), 0.25);
  EXPECT_DOUBLE_EQ(FigureLoss(/*is_error=*/true, 2, 1), -0.5);
  EXPECT_EQ(FigureLoss(/*is_error=*/true, 0.913, 0.913), 0);
}

TEST(FigureTest, TheMetadataSayWhichFigureOnHowManyItems) {
  const FigureReport report = {
      .name = "EPE", .is_error = true, .items = 136, .float32 = 0.91304, .int8 = 12.34567, .int8_of_all = 20};
  EXPECT_EQ(FigureMetadata(report), (std::map<std::string, std::string>{{"saccade_figure", "EPE"},
                                                                        {"saccade_figure_float32", "0.913"},
                                                                        {"saccade_figure_int8", "12.35"},
                                                                        {"saccade_figure_items", "136"}}));
}

}  // namespace
}  // namespace saccade::models
