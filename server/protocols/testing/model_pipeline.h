// Loaded models and the pipeline that computes them, for tests of services.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/admission/admission.h"
#include "server/catalog/catalog.h"
#include "server/core/clock.h"
#include "server/decode/decode_pool.h"
#include "server/engine/pipeline.h"
#include "server/metrics/metrics.h"
#include "server/repository/testing/test_repository.h"

namespace saccade::server::testing {

// A fixture with the parts of a server between its protocols and its models, in real time.
class ModelPipelineTest : public ::testing::Test {
 protected:
  explicit ModelPipelineTest(const AdmissionOptions& limits = {},
                             decltype(CatalogOptions::check_ensemble) check = nullptr)
      : catalog_({.repositories = {repository_.string()}, .check_ensemble = std::move(check)}, Clock::Real(),
                 &metrics_),
        admission_(*Admission::Create(limits, Clock::Real())) {}

  void TearDown() override {
    catalog_.Close();
    // Waits for answers that it encodes.
    decode_pool_.reset();
  }

  // Writes the model "identity", whose answer is its input. `more` is further text of its configuration.
  void WriteIdentity(int max_batch_size, const std::string& more = "") {
    repository_.Write("identity/config.pbtxt",
                      absl::StrCat("max_batch_size: ", max_batch_size, "\n", more, R"(
      backend: "saccade"
      parameters { key: "architecture" value { string_value: "identity" } })"));
    repository_.Write("identity/1/weights.safetensors", "");
  }

  // Loads the models that were written.
  void LoadModels() {
    ASSERT_TRUE(catalog_.Scan().ok());
    absl::Notification ended;
    absl::Status loaded;
    catalog_.Start({.model_changed = nullptr, .loaded = [&](const absl::Status& first_failure) {
                      loaded = first_failure;
                      ended.Notify();
                    }});
    ended.WaitForNotification();
    ASSERT_TRUE(loaded.ok()) << loaded;
  }

  TestRepository repository_;
  Metrics metrics_{"test"};
  Catalog catalog_;
  const std::unique_ptr<Admission> admission_;
  std::unique_ptr<DecodePool> decode_pool_ = *DecodePool::Create({.threads = 1});
  const ThreadDecoder decoder_{DecodeLimits()};
  Pipeline pipeline_{{.clock = Clock::Real(),
                      .metrics = &metrics_,
                      .models = &catalog_,
                      .admission = admission_.get(),
                      .decode_pool = decode_pool_.get(),
                      .decoder = &decoder_}};
};

}  // namespace saccade::server::testing
