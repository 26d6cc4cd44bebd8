#include "models/networks/residual/describe.h"

#include <cmath>

#include "models/networks/residual/table.h"

namespace saccade::models {
namespace {

// Pictures are scaled to 256 and cropped to 224, as is usual; other sizes keep the ratio. CIFAR's are whole.
int64_t ShortSide(const ResidualOptions& options) {
  if (options.cifar) return options.input_size;
  return static_cast<int64_t>(std::lround(static_cast<double>(options.input_size) * 256 / 224));
}

}  // namespace

Description DescribeResidual(const std::string& architecture, const Options& options,
                             const std::vector<std::string>& labels) {
  const ResidualOptions parsed = ParseResidualOptions(architecture, options);
  Description description;
  description.architecture = architecture;
  description.input.height = description.input.width = parsed.input_size;
  description.input.short_side = ShortSide(parsed);
  description.classes = parsed.classes;
  description.labels = labels;
  description.options = AsText(architecture, parsed);
  description.parameters = RecordResidual(MakeResidualPlan(parsed)).counts().AllParameters();
  return description;
}

Counts CountResidual(const std::string& architecture, const Options& options) {
  return RecordResidual(MakeResidualPlan(ParseResidualOptions(architecture, options))).counts();
}

}  // namespace saccade::models
