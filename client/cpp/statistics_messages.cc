#include "client/cpp/statistics_messages.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace saccade::client {
namespace {

Spent FromProto(const inference::StatisticDuration& proto) {
  return {static_cast<int64_t>(proto.count()), absl::Nanoseconds(static_cast<int64_t>(proto.ns()))};
}

}  // namespace

absl::StatusOr<std::vector<ModelStatistics>> FromProto(const inference::ModelStatisticsResponse& response) {
  std::vector<ModelStatistics> all;
  all.reserve(response.model_stats_size());
  for (const inference::ModelStatistics& proto : response.model_stats()) {
    ModelStatistics model;
    model.model = proto.name();
    if (!absl::SimpleAtoi(proto.version(), &model.version)) {
      return absl::InternalError(absl::StrCat("the daemon sent statistics of version '", proto.version(),
                                              "' of model '", proto.name(), "'; expected a number"));
    }
    const inference::InferStatistics& requests = proto.inference_stats();
    model.answered = FromProto(requests.success());
    model.failed = FromProto(requests.fail());
    model.decode = FromProto(requests.compute_input());
    model.queue = FromProto(requests.queue());
    model.infer = FromProto(requests.compute_infer());
    model.encode = FromProto(requests.compute_output());
    model.pictures = static_cast<int64_t>(proto.inference_count());
    model.passes = static_cast<int64_t>(proto.execution_count());
    for (const inference::InferBatchStatistics& batch : proto.batch_stats()) {
      model.passes_by_batch_size[static_cast<int64_t>(batch.batch_size())] = FromProto(batch.compute_infer());
    }
    all.push_back(std::move(model));
  }
  return all;
}

}  // namespace saccade::client
