#include "server/grpc/load_report.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace saccade::server {

void AddLoadReport(const GrpcHandler::Options& options, const CallStart& start, CallEnd* end) {
  if (options.load_report == nullptr) return;
  const auto asks = [](const auto& field) {
    return field.first == kLoadWish && absl::EqualsIgnoreCase(field.second, "bin");
  };
  if (!options.always_report_load && std::none_of(start.metadata.begin(), start.metadata.end(), asks)) return;
  end->trailers.emplace_back(kLoadTrailer, options.load_report());
}

}  // namespace saccade::server
