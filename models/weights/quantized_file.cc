#include "models/weights/quantized_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "models/api/error.h"
#include "models/weights/format/file_contents.h"
#include "models/weights/format/safetensors.h"
#include "models/weights/format/weights_format.h"
#include "models/weights/format/write_safetensors.h"
#include "models/weights/weights.h"

namespace saccade::models {
namespace {

constexpr std::string_view kSuffix = ".weight";

std::string BytesIn(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  return {static_cast<const char*>(dense.const_data_ptr()), dense.nbytes()};
}

TensorToWrite Floats32(std::string name, const at::Tensor& values) {
  return {std::move(name), ElementType::kF32, {values.numel()}, BytesIn(values.to(at::kFloat))};
}

TensorToWrite GridsOf(const Int8Grids& grids, std::string name) {
  const std::array<float, 4> values = {
      static_cast<float>(grids.input.scale), static_cast<float>(grids.input.zero),
      static_cast<float>(grids.output.scale), static_cast<float>(grids.output.zero)};
  std::string bytes(sizeof(values), '\0');
  std::memcpy(bytes.data(), values.data(), sizeof(values));
  return {std::move(name), ElementType::kF32, {4}, std::move(bytes)};
}

}  // namespace

bool IsQuantized(const std::string& path) {
  const auto beginning =
      FileContents::Read(path, kMaxWeightsFileBytes, [](Bytes /*beginning*/) { return size_t{0}; });
  if (IsStateDict(beginning->bytes())) return false;
  const auto file = ReadWeightsIndex(path);
  const std::vector<TensorEntry> entries = ParseWeights(file->bytes());
  return std::any_of(entries.begin(), entries.end(), [](const TensorEntry& entry) {
    return entry.type == ElementType::kI8 && entry.name.ends_with(kSuffix);
  });
}

std::string SourceDigest(const std::string& path) {
  const auto file = ReadWeightsIndex(path);
  const std::map<std::string, std::string> metadata = SafetensorsMetadata(file->bytes());
  const auto found = metadata.find(kSourceDigestName);
  return found == metadata.end() ? "" : found->second;
}

void WriteQuantized(const std::string& source, const std::map<std::string, QuantizedLayer>& layers,
                    const std::string& path, const std::map<std::string, std::string>& metadata) {
  const std::shared_ptr<const FileContents> file = FileContents::Read(source, kMaxWeightsFileBytes);
  std::vector<TensorToWrite> tensors;
  for (const TensorEntry& entry : ParseWeights(file->bytes())) {
    const auto found = layers.find(entry.name);
    if (found == layers.end()) {
      tensors.push_back({entry.name, entry.type, entry.shape, DenseBytes(entry)});
      continue;
    }
    const std::string base = entry.name.substr(0, entry.name.size() - kSuffix.size());
    const QuantizedLayer& layer = found->second;
    tensors.push_back({entry.name, ElementType::kI8, entry.shape, BytesIn(layer.weight.values)});
    tensors.push_back(Floats32(base + kScaleSuffix, layer.weight.scale));
    tensors.push_back(GridsOf(layer.grids, base + kGridsSuffix));
  }
  WriteSafetensors(std::move(tensors), path, metadata);
}

}  // namespace saccade::models
