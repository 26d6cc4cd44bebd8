#include "server/grpc/load_report.h"

#include <gtest/gtest.h>

namespace saccade::server {
namespace {

Metadata TrailersOf(bool always, Metadata metadata, bool has_reports = true) {
  GrpcHandler::Options options;
  options.always_report_load = always;
  if (has_reports) options.load_report = [] { return std::string("report"); };
  CallStart start;
  start.metadata = std::move(metadata);
  CallEnd end;
  AddLoadReport(options, start, &end);
  return end.trailers;
}

TEST(LoadReportTest, IsSentToWhoAsksOrToAll) {
  const Metadata report = {{"endpoint-load-metrics-bin", "report"}};
  EXPECT_EQ(TrailersOf(true, {}), report);
  EXPECT_EQ(TrailersOf(false, {{"endpoint-load-metrics-format", "bin"}}), report);
  EXPECT_EQ(TrailersOf(false, {{"endpoint-load-metrics-format", "BIN"}}), report);
  EXPECT_EQ(TrailersOf(false, {}), Metadata());
  EXPECT_EQ(TrailersOf(false, {{"endpoint-load-metrics-format", "text"}}), Metadata()) << "not in a trailer";
  EXPECT_EQ(TrailersOf(true, {}, /*has_reports=*/false), Metadata());
}

}  // namespace
}  // namespace saccade::server
