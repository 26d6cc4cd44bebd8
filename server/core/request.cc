#include "server/core/request.h"

namespace saccade::server {

int64_t Request::size() const {
  if (const auto* tensor = std::get_if<TensorInput>(&input))
    return tensor->shape.empty() ? 0 : tensor->shape[0];
  if (const auto* named = std::get_if<NamedTensors>(&input)) return named->rows;
  return static_cast<int64_t>(std::get<std::vector<Picture>>(input).size()) / views;
}

namespace {

template <typename T>
int64_t Held(const std::vector<T>& values) {
  return static_cast<int64_t>(values.size() * sizeof(T));
}

int64_t Held(const models::Classification& result) { return Held(result.logits); }
int64_t Held(const models::Detections& result) {
  int64_t bytes = Held(result.items);
  for (const models::Detection& item : result.items) bytes += Held(item.mask) + Held(item.keypoints);
  return bytes;
}
int64_t Held(const models::Segmentation& result) { return Held(result.labels) + Held(result.areas); }
int64_t Held(const models::Disparity& result) { return Held(result.values); }
int64_t Held(const models::Actions& result) { return Held(result.items); }
int64_t Held(const models::Restoration& result) { return Held(result.values); }
int64_t Held(const models::Embedding& result) { return Held(result.values); }
int64_t Held(const models::Failure& /*result*/) { return 0; }

}  // namespace

int64_t BytesOf(const std::vector<models::TaskResult>& results) {
  int64_t bytes = 0;
  for (const models::TaskResult& result : results) {
    bytes += std::visit([](const auto& kind) { return Held(kind); }, result);
  }
  return bytes;
}

int64_t BytesOf(const std::vector<Tensor>& outputs) {
  int64_t bytes = 0;
  for (const Tensor& output : outputs) bytes += static_cast<int64_t>(output.data.size());
  return bytes;
}

int64_t Response::bytes() const {
  int64_t bytes = BytesOf(results) + BytesOf(outputs);
  if (explanation) {
    for (const models::AttentionMap& map : explanation->maps) bytes += Held(map.values);
  }
  return bytes;
}

int64_t Request::bytes() const {
  if (const auto* tensor = std::get_if<TensorInput>(&input)) return static_cast<int64_t>(tensor->data.size());
  int64_t bytes = 0;
  if (const auto* named = std::get_if<NamedTensors>(&input)) {
    for (const Tensor& tensor : named->tensors) bytes += static_cast<int64_t>(tensor.data.size());
    return bytes;
  }
  for (const Picture& picture : std::get<std::vector<Picture>>(input)) {
    bytes +=
        std::visit([](const auto& kind) { return static_cast<int64_t>(kind.data.bytes.size()); }, picture);
  }
  return bytes;
}

}  // namespace saccade::server
