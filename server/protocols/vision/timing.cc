#include "server/protocols/vision/timing.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/engine/item.h"
#include "server/metrics/procfs.h"

namespace saccade::server {

void ToMessage(const ModelTiming& timing, bool names_sizes, v1::Timing* message) {
  for (const LearnedTiming& learned : timing.buckets) {
    v1::Timing::Bucket* const bucket = message->add_buckets();
    bucket->set_id(learned.bucket);
    if (names_sizes) bucket->set_name(BucketName(learned.bucket));
    bucket->set_items(learned.computed);
    for (const absl::Duration mean : learned.mean) bucket->add_seconds(absl::ToDoubleSeconds(mean));
    bucket->set_smallest(static_cast<int32_t>(learned.smallest));
    bucket->set_largest(static_cast<int32_t>(learned.largest));
    bucket->set_deviation(learned.deviation);
  }
  message->set_instances(timing.instances);
  message->set_threads(timing.threads);
  message->set_cores(timing.cores);
  message->set_max_queue_size(timing.max_queue_size);
  message->set_model_bytes(timing.model_bytes);
  message->set_resident_bytes(ResidentBytes());
}

}  // namespace saccade::server
