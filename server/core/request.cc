#include "server/core/request.h"

namespace saccade::server {

int64_t Request::size() const {
  if (const auto* tensor = std::get_if<TensorInput>(&input))
    return tensor->shape.empty() ? 0 : tensor->shape[0];
  return static_cast<int64_t>(std::get<std::vector<Picture>>(input).size()) / views;
}

int64_t Request::bytes() const {
  if (const auto* tensor = std::get_if<TensorInput>(&input)) return static_cast<int64_t>(tensor->data.size());
  int64_t bytes = 0;
  for (const Picture& picture : std::get<std::vector<Picture>>(input)) {
    bytes +=
        std::visit([](const auto& kind) { return static_cast<int64_t>(kind.data.bytes.size()); }, picture);
  }
  return bytes;
}

}  // namespace saccade::server
