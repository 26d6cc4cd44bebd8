#include "server/inference/cached_inference.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/cache/cache_key.h"
#include "server/catalog/catalog.h"
#include "server/core/fake_clock.h"
#include "server/repository/testing/test_repository.h"

namespace saccade::server {
namespace {

// Models that are unloaded are those whose use is not noted: an answer from the cache begins no pass.
TEST(CachedInferenceTest, AnAnswerFromTheCacheCountsAsUseOfItsModel) {
  TestRepository repository;
  repository.Write("m/config.pbtxt", R"pb(
    backend: "saccade"
    max_batch_size: 2
    response_cache { enable: true }
    parameters {
      key: "architecture"
      value { string_value: "identity" }
    })pb");
  repository.Write("m/1/weights.safetensors", "");
  FakeClock clock;
  Metrics metrics("test");
  ResponseCache cache(1 << 20);
  Catalog catalog({.repositories = {repository.string()}, .response_cache = &cache}, &clock, &metrics);
  ASSERT_TRUE(catalog.Scan().ok());
  absl::Notification loaded;
  catalog.Start(
      {.model_changed = nullptr, .loaded = [&](const absl::Status& /*first*/) { loaded.Notify(); }});
  loaded.WaitForNotification();
  const auto model = catalog.FindReady("m", 0);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_NE((*model)->cached_answers(), nullptr);

  TensorCall call;
  call.model = "m";
  call.protocol = "oip";
  call.outputs = {{.name = "x"}};
  TensorAnswer kept;
  kept.model = "m";
  kept.outputs = {Tensor{.name = "x", .type = DataType::kInt8, .shape = {}, .data = {}}};
  (*model)->cached_answers()->Keep(CacheKeyOf(call), kept);

  const auto admission = *Admission::Create({}, &clock);
  Pipeline pipeline({.clock = &clock,
                     .metrics = &metrics,
                     .models = &catalog,
                     .admission = admission.get(),
                     .decode_pool = nullptr,
                     .decoder = nullptr});
  CachedInference cached(
      &pipeline,
      [](const std::shared_ptr<ServedModel>& /*model*/, const TensorCall& /*call*/, TensorDone done,
         const CachedInference::Keep& /*keep*/, const std::shared_ptr<Admission::Ticket>& /*ticket*/,
         const std::optional<AnswerOrder::Turn>& /*turn*/) {
        std::move(done)(absl::InternalError("it was computed"));
      });
  clock.Advance(absl::Hours(1));
  call.arrival = clock.Now();
  std::optional<absl::Status> answered;
  cached.Infer(*model, std::move(call),
               [&](const absl::StatusOr<TensorAnswer>& answer) { answered = answer.status(); });
  EXPECT_EQ(answered, absl::OkStatus());
  EXPECT_EQ((*model)->last_used(), clock.Now());
}

}  // namespace
}  // namespace saccade::server
