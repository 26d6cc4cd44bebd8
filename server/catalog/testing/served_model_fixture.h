// What the tests of ServedModel share: an engine without a network, and options of a model with it.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "server/catalog/served_model.h"
#include "server/engine/testing/calls.h"

namespace saccade::server {

// Answers every item with the same result. Derived classes say what the warm-up learns and what a pass does.
class AnsweringEngine : public Engine {
 public:
  const models::Description& description() const override { return description_; }
  const char* items_name() const override { return "pictures"; }
  absl::Status Check(const Request& /*request*/) const override { return absl::OkStatus(); }
  absl::Status Prepare(PredictCall& /*call*/, const Decoder& /*decoder*/, Clock* /*clock*/) const override {
    return absl::OkStatus();
  }
  std::function<absl::Status()> WarmUpPass(int64_t /*size*/) const override { return nullptr; }
  PassEnd Compute(Shares batch, Clock* clock, ModelMetrics* /*metrics*/,
                  const std::function<void()>& /*advanced*/) const override {
    Pass();
    for (auto& share : batch) {
      std::vector<models::TaskResult> results(share->size(), models::Classification{.logits = {1}});
      share->Answer(std::move(results), {.batch_size = 1, .started = clock->Now(), .ended = clock->Now()});
    }
    return {.whole = true};
  }

 private:
  virtual void Pass() const = 0;

  const models::Description description_ = {};
};

class ServedModelTest : public CallTest {
 protected:
  ServedModelOptions Options(std::vector<int> gpus) {
    ServedModelOptions options;
    options.settings.name = "m";
    options.settings.batching.max_batch_size = 1;
    options.settings.instances = static_cast<int>(gpus.size());
    options.settings.gpus = std::move(gpus);
    options.version.version = 3;
    return options;
  }

  DeviceGroup devices_{{.cores = 1}, &clock_};
};

}  // namespace saccade::server
