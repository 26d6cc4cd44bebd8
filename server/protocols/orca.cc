#include "server/protocols/orca.h"

#include "xds/data/orca/v3/orca_load_report.pb.h"

namespace saccade::server {

std::string OrcaLoadReport(const LoadReport& load) {
  xds::data::orca::v3::OrcaLoadReport report;
  report.set_application_utilization(load.utilization);
  report.set_rps_fractional(load.requests_per_second);
  report.set_eps(load.failures_per_second);
  auto& named = *report.mutable_named_metrics();
  named["shed_ratio"] = load.overload_ratio;
  named["waiting_requests"] = static_cast<double>(load.waiting);
  return report.SerializeAsString();
}

}  // namespace saccade::server
