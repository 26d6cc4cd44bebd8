#include "server/engine/pipeline.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/core/fake_clock.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;

// Has no model ready. What it finds the second time differs.
class FakeFinder final : public ModelFinder {
 public:
  absl::StatusOr<std::shared_ptr<ReadyModel>> FindModel(absl::string_view /*name*/,
                                                        int64_t /*version*/) const override {
    if (looks_++ == 0) return absl::UnavailableError("not loaded");
    return absl::NotFoundError("found anew");
  }
  bool AwaitModel(const CallHead& call, Resume& /*resume*/) const override {
    awaited_.push_back(call.model);
    return false;
  }
  void WantModel(const CallHead& call) const override { wanted_.push_back(call.model); }

  mutable int looks_ = 0;
  mutable std::vector<std::string> awaited_;
  mutable std::vector<std::string> wanted_;
};

class PipelineTest : public ::testing::Test {
 protected:
  static Request RequestFor(const std::string& model) {
    Request request;
    request.model = model;
    request.protocol = "grpc";
    return request;
  }

  FakeClock clock_;
  Metrics metrics_{"test"};
  FakeFinder finder_;
  Pipeline pipeline_{{.clock = &clock_,
                      .metrics = &metrics_,
                      .models = &finder_,
                      .admission = nullptr,
                      .decode_pool = nullptr,
                      .decoder = nullptr}};
};

TEST_F(PipelineTest, AModelThatBecameReadyMeanwhileIsLookedForAgain) {
  std::optional<absl::Status> answered;
  pipeline_.Predict(RequestFor("m"),
                    [&](const absl::StatusOr<Response>& outcome) { answered = outcome.status(); });
  EXPECT_THAT(finder_.awaited_, ElementsAre("m"));
  EXPECT_EQ(answered, absl::NotFoundError("found anew"));
}

TEST_F(PipelineTest, ARequestWhoseInputIsStillToArriveTakesNoPlaceAmongThoseThatWait) {
  EXPECT_EQ(pipeline_.CheckAdmission(RequestFor("m"), 1), absl::UnavailableError("not loaded"));
  EXPECT_THAT(finder_.wanted_, ElementsAre("m"));
  EXPECT_TRUE(finder_.awaited_.empty());
}

}  // namespace
}  // namespace saccade::server
