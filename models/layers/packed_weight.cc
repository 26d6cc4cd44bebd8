#include "models/layers/packed_weight.h"

#include <bit>
#include <mutex>
#include <utility>

#include "models/layers/onednn_operator.h"

namespace saccade::models {
namespace {

using Reorder = at::Tensor(const at::Tensor&, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, int64_t,
                           at::OptionalIntArrayRef);
using Describe = at::Tensor(const at::Tensor&);

// Maximum number of layouts kept. Inputs that would need another one use the first, which oneDNN then
// reorders in every call.
constexpr size_t kMaxLayouts = 4;
// Maximum number of entries in by_shape_, which is cleared when full. No bounded set of buckets reaches it.
constexpr size_t kMaxShapes = 4096;

std::string DescriptionOf(const at::Tensor& packed) {
  static const auto describe = OneDnnOperator<Describe>("mkldnn::_get_mkldnn_serialized_md");
  const at::Tensor bytes = describe.call(packed);
  return {static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes()};
}

// Rounds the batch dimension up to a power of two. The number of regions or pictures varies from call to
// call, and only its order of magnitude affects the layout.
std::vector<int64_t> ShapeClass(at::IntArrayRef input) {
  std::vector<int64_t> shape = input.vec();
  shape[0] = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(shape[0])));
  return shape;
}

}  // namespace

PackedWeight::PackedWeight(at::Tensor weight, Geometry geometry)
    : packer_([geometry = std::move(geometry)](const at::Tensor& plain, const std::vector<int64_t>& shape) {
        static const auto reorder = OneDnnOperator<Reorder>("mkldnn::_reorder_convolution_weight");
        return reorder.call(plain, geometry.padding, geometry.stride, geometry.dilation, geometry.groups,
                            at::IntArrayRef(shape));
      }),
      keeps_plain_(false),
      plain_(std::move(weight)) {}

PackedWeight::PackedWeight(at::Tensor weight, Packer packer)
    : packer_(std::move(packer)), keeps_plain_(true), plain_(std::move(weight)) {}

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
  if (layouts_.size() >= kMaxLayouts) return layouts_.front().weight;
  const at::Tensor plain = plain_.defined() ? plain_ : layouts_.front().weight.to_dense();
  const at::Tensor packed = packer_(plain, shape);
  if (!keeps_plain_) plain_.reset();
  std::string description = DescriptionOf(packed);
  for (const Layout& layout : layouts_) {
    if (layout.description == description) return layout.weight;
  }
  layouts_.push_back({std::move(description), packed});
  return packed;
}

}  // namespace saccade::models
