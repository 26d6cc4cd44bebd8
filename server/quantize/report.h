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

// Returns "0.12 %", or "< 0.01 %" for a smaller share that is not 0.
std::string PercentText(double share);

}  // namespace saccade::server
