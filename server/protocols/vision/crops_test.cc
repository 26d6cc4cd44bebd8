#include "server/protocols/vision/crops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "server/protocols/testing/model_pipeline.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using VisionCallTest = testing::ModelPipelineTest;

// A second wait would be rejected at once with another text, because the load has failed a moment ago.
TEST_F(VisionCallTest, ARequestWaitsForItsModelOnce) {
  repository_.Write("bad/config.pbtxt", "nonsense");
  Catalog catalog(
      {.repositories = {repository_.string()}, .control = ModelControl::kExplicit, .load_on_demand = true},
      Clock::Real(), &metrics_);
  ASSERT_TRUE(catalog.Scan().ok());
  absl::Notification started;
  catalog.Start({.model_changed = nullptr, .loaded = [&](const absl::Status&) { started.Notify(); }});
  started.WaitForNotification();
  Pipeline::Deps deps = pipeline_.deps();
  deps.models = &catalog;
  Pipeline pipeline(deps);

  v1::PredictRequest message;
  message.set_model("bad");
  v1::PredictResponse answer;
  Request request;
  request.model = "bad";
  request.protocol = "grpc";
  request.arrival = Clock::Real()->Now();
  request.input = std::vector<Picture>();
  absl::Notification ended;
  absl::Status status;
  PredictVision(&pipeline, &catalog, std::move(request),
                {.message = &message, .answer = &answer, .max_bytes = 1 << 20},
                [&](const absl::StatusOr<Response>& outcome) {
                  status = outcome.status();
                  ended.Notify();
                });
  ended.WaitForNotification();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("could not be loaded"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("tries again")));
  catalog.Close();
}

}  // namespace
}  // namespace saccade::server
