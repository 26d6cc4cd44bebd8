#include "server/quantize/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Layers that are quantized together have one row, which names their module and each weight.
TEST(QuantizeReportTest, AModuleIsOneRow) {
  models::QuantizeReport report;
  report.units = {{.module = "", .layers = {"stem<.conv.weight"}, .loss = 0.001, .quantized = true},
                  {.module = "blocks.3",
                   .layers = {"b.expand.weight", "b.depthwise.weight", "b.project.weight"},
                   .loss = 0.02,
                   .quantized = false}};
  ReportInput input;
  input.model = "shapes";
  const std::string page = QuantizeReportPage(input, report);
  EXPECT_THAT(page, HasSubstr("<td>layers in int8</td><td class=\"n\">1 of 4</td>"));
  const std::string module =
      "<tr class=\"kept\"><td>module <code>blocks.3</code>:<br><code>b.expand.weight</code><br>"
      "<code>b.depthwise.weight</code><br><code>b.project.weight</code></td><td>higher precision</td>"
      "<td class=\"n\">2 %</td>";
  const std::string layer = "<tr><td><code>stem&lt;.conv.weight</code></td><td>int8</td>";
  ASSERT_THAT(page, HasSubstr(module));
  ASSERT_THAT(page, HasSubstr(layer));
  EXPECT_LT(page.find(module), page.find(layer)) << "the costliest comes first";
}

TEST(QuantizeReportTest, WithLabelsTheFigureAndItsItemsAreTold) {
  models::QuantizeReport report;
  report.units = {{.module = "", .layers = {"stem"}, .loss = 0.01, .quantized = true}};
  report.loss = 0.001;
  report.loss_of_all = 0.03;
  EXPECT_EQ(LossText(report, 64), "0.1 % of the answers to 64 items change (all layers: 3 %)");
  EXPECT_THAT(QuantizeReportPage({}, report), HasSubstr("labels were not used"));
  report.figure = {.name = "top-1",
                   .is_error = false,
                   .items = 136,
                   .float32 = 0.95,
                   .int8 = 0.949,
                   .int8_of_all = 0.9215};
  EXPECT_EQ(
      LossText(report, 64),
      "top-1 is 0.949 in int8 and 0.95 in float32 on 136 held-out items: 0.1 % lost (all layers: 3 % lost)");
  report.loss = -0.02;
  EXPECT_THAT(LossText(report, 64), HasSubstr("held-out items: 2 % gained (all"));
  const std::string page = QuantizeReportPage({}, report);
  EXPECT_THAT(page, Not(HasSubstr("labels were not used")));
  for (const std::string row :
       {"<td>top-1 in float32</td><td class=\"n\">0.95</td>",
        "<td>top-1 in int8 with these layers</td><td class=\"n\">0.949</td>",
        "<td>top-1 in int8 with all layers</td><td class=\"n\">0.9215</td>",
        "<td>held-out items with labels</td><td class=\"n\">136</td>",
        "<td>share of top-1 with these layers</td><td class=\"n\">2 % gained</td>",
        "<td>share of top-1 with all layers in int8</td><td class=\"n\">3 % lost</td>"})
    EXPECT_THAT(page, HasSubstr(row));
}

TEST(QuantizeReportTest, SharesArePercentWithoutExponents) {
  EXPECT_EQ(PercentText(1.0), "100 %");
  EXPECT_EQ(PercentText(0.123), "12.3 %");
  EXPECT_EQ(PercentText(0.02), "2 %");
  EXPECT_EQ(PercentText(0.00123), "0.12 %");
  EXPECT_EQ(PercentText(0.0001), "0.01 %");
  EXPECT_EQ(PercentText(1e-7), "< 0.01 %");
  EXPECT_EQ(PercentText(0), "0 %");
}

TEST(QuantizeReportTest, AVerySmallShareIsEscaped) {
  models::QuantizeReport report;
  report.units = {{.module = "", .layers = {"stem"}, .loss = 1e-7, .quantized = true}};
  report.loss = 1e-7;
  const std::string page = QuantizeReportPage({}, report);
  EXPECT_THAT(page, Not(HasSubstr("< 0.01")));
  EXPECT_THAT(page, HasSubstr("&lt; 0.01 %"));
}

}  // namespace
}  // namespace saccade::server
