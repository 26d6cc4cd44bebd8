#include "models/networks/residual/describe.h"

#include "models/networks/residual/table.h"

namespace saccade::models {

Description DescribeResidual(const std::string& architecture, const Options& options,
                             const std::vector<std::string>& labels) {
  const ResidualOptions parsed = ParseResidualOptions(architecture, options);
  Description description;
  description.architecture = architecture;
  description.input = parsed.pictures;
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
