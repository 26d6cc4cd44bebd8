// The page about what quantizing a model cost.
#pragma once

#include <cstddef>
#include <string>

#include "models/quantize/quantizer.h"

namespace saccade::server {

struct ReportInput {
  std::string model;
  std::string architecture;
  std::string weights;  // the file's path
  size_t items = 0;
  models::RangeMethod method = models::RangeMethod::kMse;
  double keep_within = 0;
};

// Returns an HTML page that loads nothing else.
std::string QuantizeReportPage(const ReportInput& input, const models::QuantizeReport& report);

// Returns a sentence's part about what is lost: "0.12 % of the answers to 64 items change (all layers: 3 %)",
// or with labels "top-1 is 0.949 in int8 and 0.95 in float32 on 136 held-out items: 0.1 % lost (all layers: 3
// % lost)". `items`: those on which the ranges were measured.
std::string LossText(const models::QuantizeReport& report, size_t items);

// Returns "0.12 %", or "< 0.01 %" for a smaller share that is not 0.
std::string PercentText(double share);

}  // namespace saccade::server
