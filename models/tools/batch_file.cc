#include "models/tools/batch_file.h"

#include <ATen/ops/empty.h>

#include <cstring>
#include <stdexcept>

#include "models/api/text.h"
#include "models/weights/format/file_contents.h"
#include "models/weights/format/safetensors.h"

namespace saccade::models {
namespace {

constexpr int64_t kMaxInputBytes = int64_t{1} << 32;

at::Tensor Copied(const TensorEntry& entry) {
  if (entry.type != ElementType::kF32 && entry.type != ElementType::kF64)
    throw std::runtime_error(Quote(entry.name) + " must be F32 or F64, is " +
                             Info(entry.type).safetensors_name);
  const at::Tensor tensor =
      at::empty(entry.shape, entry.type == ElementType::kF32 ? at::kFloat : at::kDouble);
  std::memcpy(tensor.data_ptr(), entry.data, tensor.nbytes());
  return tensor;
}

Placement PlacementOf(const at::Tensor& row) {
  const auto side = [&](int64_t i) { return static_cast<int64_t>(row[i].item<double>()); };
  Placement placement{.sent = {side(0), side(1)}, .scaled = {side(2), side(3)}, .bucket = {side(4), side(5)}};
  if (row.size(0) == 8) {
    placement.sent_depth = side(6);
    placement.depth = side(7);
  }
  return placement;
}

}  // namespace

Batch ReadBatch(const std::string& path) {
  const auto file = FileContents::Read(path, kMaxInputBytes);
  Batch batch;
  at::Tensor placements;
  for (const TensorEntry& entry : ParseSafetensors(file->bytes())) {
    if (entry.name == "pixels") batch.pixels = Copied(entry);
    if (entry.name == "placements") placements = Copied(entry);
  }
  if (!batch.pixels.defined() || !placements.defined())
    throw std::runtime_error(path + ": must hold the tensors pixels and placements");
  if (placements.dim() != 2 || (placements.size(1) != 6 && placements.size(1) != 8))
    throw std::runtime_error(path + ": placements must be [B, 6] or [B, 8], are " +
                             ShapeText(placements.sizes()));
  for (int64_t i = 0; i < placements.size(0); ++i) batch.placements.push_back(PlacementOf(placements[i]));
  return batch;
}

}  // namespace saccade::models
