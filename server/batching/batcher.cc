#include "server/batching/batcher.h"

namespace saccade::server {

absl::StatusOr<std::unique_ptr<Batcher>> Batcher::Create(const BatcherOptions& options, const Places& places,
                                                         Device* device) {
  if (absl::Status sound = CheckOptions(options); !sound.ok()) return sound;
  return std::unique_ptr<Batcher>(new Batcher(device, device->AddModel(options, places)));
}

Batcher::~Batcher() { device_->RemoveModel(model_); }

void Batcher::Learn(int64_t bucket, int64_t size, absl::Duration took) {
  device_->Learn(model_, bucket, size, took);
}

absl::Status Batcher::Submit(std::unique_ptr<BatchTask>& task, std::optional<TinyBatch>* tiny) {
  return device_->Submit(model_, task, tiny);
}

absl::Status Batcher::Consider(const BatchTask::Traits& traits, absl::Span<const int64_t> buckets) {
  return device_->Consider(model_, traits, buckets);
}

std::vector<std::unique_ptr<BatchTask>> Batcher::Take(int instance) {
  return device_->Take(model_, instance);
}

void Batcher::Finished(int instance, bool learn, std::optional<TinyBatch>* tiny) {
  device_->Finished(model_, instance, learn, tiny);
}

void Batcher::NoRoomFor(int64_t bucket, int64_t size) { device_->NoRoomFor(model_, bucket, size); }

void Batcher::Close() { device_->Close(model_); }

int64_t Batcher::queued() const { return device_->queued(model_); }

}  // namespace saccade::server
