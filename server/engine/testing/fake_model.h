// A model for tests of calls that are answered without an engine.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/engine/ready_model.h"

namespace saccade::server {

class FakeModel : public ReadyModel {
 public:
  using ConsiderFunction = std::function<absl::Status(const BatchTask::Traits&, absl::Span<const int64_t>)>;

  // The pointers must outlive the model. Without `consider`, every item is accepted.
  FakeModel(int64_t version, const models::Description* description, ModelMetrics* metrics,
            ConsiderFunction consider = nullptr)
      : version_(version), description_(description), metrics_(metrics), consider_(std::move(consider)) {}

  const ModelSettings& settings() const override { return settings_; }
  int64_t version() const override { return version_; }
  ModelMetrics* metrics() const override { return metrics_; }
  std::shared_ptr<const ModelIdentity> identity() const override {
    return std::make_shared<const ModelIdentity>();
  }
  const models::Description& description() const override { return *description_; }
  // Must not be called.
  const Engine& engine() const override { std::abort(); }
  AnswerOrder* answer_order() const override { return nullptr; }
  absl::Status Consider(const BatchTask::Traits& traits, absl::Span<const int64_t> buckets) const override {
    return consider_ ? consider_(traits, buckets) : absl::OkStatus();
  }
  int64_t MaxItemsOfRequest(int /*priority*/) const override { return max_items_; }
  void set_max_items(int64_t items) { max_items_ = items; }
  absl::Status Submit(std::unique_ptr<CallShare>& /*share*/) override {
    return absl::UnimplementedError("a fake model has no queue");
  }

 private:
  const ModelSettings settings_;
  const int64_t version_;
  const models::Description* const description_;
  ModelMetrics* const metrics_;
  const ConsiderFunction consider_;
  int64_t max_items_ = std::numeric_limits<int64_t>::max();
};

}  // namespace saccade::server
