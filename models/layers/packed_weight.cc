#include "models/layers/packed_weight.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <bit>
#include <mutex>

namespace saccade::models {
namespace {

using Reorder = at::Tensor(const at::Tensor&, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, int64_t,
                           at::OptionalIntArrayRef);
using Describe = at::Tensor(const at::Tensor&);

// A model that meets more than this many layouts has buckets enough to live with the last ones being
// reordered.
constexpr size_t kMaxLayouts = 4;
// Shapes are remembered by pointers to layouts; this many are forgotten at once, which no bounded set of
// buckets reaches.
constexpr size_t kMaxShapes = 4096;

std::string DescriptionOf(const at::Tensor& packed) {
  static const auto describe = c10::Dispatcher::singleton()
                                   .findSchemaOrThrow("mkldnn::_get_mkldnn_serialized_md", "")
                                   .typed<Describe>();
  const at::Tensor bytes = describe.call(packed);
  return {static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes()};
}

// The number of regions or pictures changes from call to call; what matters is its order of magnitude.
std::vector<int64_t> ShapeClass(at::IntArrayRef input) {
  std::vector<int64_t> shape = input.vec();
  shape[0] = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(shape[0])));
  return shape;
}

}  // namespace

at::Tensor PackedWeight::For(at::IntArrayRef input) {
  const std::vector<int64_t> shape = ShapeClass(input);
  {
    const std::shared_lock lock(mutex_);
    if (const auto found = by_shape_.find(shape); found != by_shape_.end()) return found->second;
  }
  const std::unique_lock lock(mutex_);
  if (const auto found = by_shape_.find(shape); found != by_shape_.end()) return found->second;
  if (by_shape_.size() >= kMaxShapes) by_shape_.clear();
  return by_shape_[shape] = Pack(shape);
}

at::Tensor PackedWeight::Pack(const std::vector<int64_t>& shape) {
  static const auto reorder = c10::Dispatcher::singleton()
                                  .findSchemaOrThrow("mkldnn::_reorder_convolution_weight", "")
                                  .typed<Reorder>();
  if (layouts_.size() >= kMaxLayouts) return layouts_.front().weight;
  const at::Tensor plain = plain_.defined() ? plain_ : layouts_.front().weight.to_dense();
  const at::Tensor packed = reorder.call(plain, geometry_.padding, geometry_.stride, geometry_.dilation,
                                         geometry_.groups, at::IntArrayRef(shape));
  plain_.reset();
  std::string description = DescriptionOf(packed);
  for (const Layout& layout : layouts_) {
    if (layout.description == description) return layout.weight;
  }
  layouts_.push_back({std::move(description), packed});
  return packed;
}

}  // namespace saccade::models
