#include "models/weights/weights.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "models/api/error.h"
#include "models/api/text.h"
#include "models/weights/format/file_contents.h"
#include "models/weights/format/tensor_entry.h"
#include "models/weights/format/weights_format.h"

namespace saccade::models {
namespace {

constexpr size_t kMaxNamesListed = 20;
constexpr std::string_view kWeightSuffix = ".weight";

std::optional<at::ScalarType> FloatingType(ElementType type) {
  switch (type) {
    case ElementType::kF16:
      return at::kHalf;
    case ElementType::kBF16:
      return at::kBFloat16;
    case ElementType::kF32:
      return at::kFloat;
    case ElementType::kF64:
      return at::kDouble;
    default:
      return std::nullopt;
  }
}

// Bytes of the file that the entry's elements span. Strides may skip some, so this is not the number of
// elements.
size_t SpanBytes(const TensorEntry& entry) {
  int64_t last = 0;
  for (size_t i = 0; i < entry.shape.size(); ++i) {
    if (entry.shape[i] == 0) return 0;
    last += (entry.shape[i] - 1) * entry.strides[i];
  }
  return (static_cast<size_t>(last) + 1) * static_cast<size_t>(Info(entry.type).size);
}

// The entries of a file that have bytes in common with another, as tensors of a state_dict may.
using SharedEntries = std::set<const TensorEntry*>;

SharedEntries SharedEntriesOf(const std::vector<TensorEntry>& entries) {
  std::vector<const TensorEntry*> order;
  for (const TensorEntry& entry : entries) {
    if (SpanBytes(entry) > 0) order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(),
            [](const TensorEntry* a, const TensorEntry* b) { return a->data < b->data; });
  SharedEntries shared;
  // The entry that reaches farthest of those before the current one.
  const TensorEntry* farthest = nullptr;
  const auto end = [](const TensorEntry& entry) { return entry.data + SpanBytes(entry); };
  for (const TensorEntry* entry : order) {
    if (farthest != nullptr && entry->data < end(*farthest)) shared.insert({farthest, entry});
    if (farthest == nullptr || end(*farthest) < end(*entry)) farthest = entry;
  }
  return shared;
}

// A file in memory whose entries become tensors.
struct WeightsSource {
  std::shared_ptr<const FileContents> file;
  SharedEntries shared;
};

// Makes a tensor over the file's memory. Its pages are released with the tensor, and not only with the file,
// because the data made from the weights replaces them.
at::Tensor Alias(const TensorEntry& entry, at::ScalarType type, const WeightsSource& source) {
  // Neither format guarantees alignment, and an unaligned element must not be read in place.
  const auto size = static_cast<size_t>(Info(entry.type).size);
  const size_t bytes = SpanBytes(entry);
  void* data = const_cast<std::byte*>(entry.data);
  if (bytes == 0) return at::from_blob(data, entry.shape, entry.strides, at::TensorOptions(type)).clone();
  // Bytes that another tensor has as well are released with the file.
  const Bytes part = source.shared.contains(&entry) ? Bytes() : Bytes(entry.data, bytes);
  if (reinterpret_cast<uintptr_t>(data) % size == 0) {
    return at::from_blob(
        data, entry.shape, entry.strides, [file = source.file, part](void*) { file->LetGo(part); },
        at::TensorOptions(type));
  }
  const std::shared_ptr<std::byte[]> copy(new std::byte[bytes]);
  std::memcpy(copy.get(), entry.data, bytes);
  source.file->LetGo(part);
  return at::from_blob(copy.get(), entry.shape, entry.strides, [copy](void*) {}, at::TensorOptions(type));
}

// What to do about a file whose scales cannot be used.
constexpr char kQuantizeAgain[] = "; make the file again with saccade quantize";

// Takes the F32 tensor `name`, with this shape, that belongs to the quantized weight `weight`. Throws a
// LoadError.
at::Tensor TakePart(const std::string& weight, const std::string& name, const std::vector<int64_t>& shape,
                    std::map<std::string, const TensorEntry*>& left, const WeightsSource& source) {
  const std::string owner = Quote(weight) + " is quantized (I8), but " + Quote(name);
  const auto found = left.find(name);
  if (found == left.end()) throw LoadError(owner + " is missing" + kQuantizeAgain);
  const TensorEntry& entry = *found->second;
  left.erase(found);
  if (entry.type != ElementType::kF32 || entry.shape != shape) {
    throw LoadError(owner + " is " + Info(entry.type).safetensors_name + " " + ShapeText(entry.shape) +
                    ", expected F32 " + ShapeText(shape) + kQuantizeAgain);
  }
  return Alias(entry, at::kFloat, source).contiguous();
}

// Throws a LoadError if a quantized weight is not symmetric: a batch norm's negative scale negates its
// values, and -128 has no opposite.
void CheckSymmetric(const std::string& name, const at::Tensor& values) {
  if (values.min().item<int8_t>() >= -127) return;
  throw LoadError(Quote(name) + " is quantized (I8) and holds -128; expected values from -127 to 127" +
                  kQuantizeAgain);
}

// Takes and checks what belongs to a quantized weight.
void TakeScales(const TensorSpec& spec, std::map<std::string, const TensorEntry*>& left,
                const WeightsSource& source, TensorMap& tensors) {
  const std::string base = spec.name.substr(0, spec.name.size() - kWeightSuffix.size());
  const at::Tensor scale = TakePart(spec.name, base + kScaleSuffix, {spec.shape[0]}, left, source);
  const at::Tensor grids = TakePart(spec.name, base + kGridsSuffix, {4}, left, source);
  const auto is_scale = [](float value) { return std::isfinite(value) && value > 0; };
  const auto is_zero = [](float value) { return value >= 0 && value <= 255 && value == std::floor(value); };
  const auto* scales = scale.const_data_ptr<float>();
  if (!std::all_of(scales, scales + scale.numel(), is_scale)) {
    throw LoadError(Quote(base + kScaleSuffix) +
                    " holds a value that is not a scale; expected finite numbers " + "above 0" +
                    kQuantizeAgain);
  }
  const auto* grid = grids.const_data_ptr<float>();
  if (!is_scale(grid[0]) || !is_zero(grid[1]) || !is_scale(grid[2]) || !is_zero(grid[3])) {
    throw LoadError(Quote(base + kGridsSuffix) +
                    " is not two grids; expected twice a finite scale above 0 and a " +
                    "whole zero point from 0 to 255" + kQuantizeAgain);
  }
  tensors[base + kScaleSuffix] = scale;
  tensors[base + kGridsSuffix] = grids;
}

// Whether this tensor may be quantized: a convolution's weight.
bool MayBeQuantized(const TensorSpec& spec) {
  return spec.shape.size() == 4 && spec.name.ends_with(kWeightSuffix);
}

// Collects what is wrong with a file's tensors, so that one error reports all of it.
class Complaints {
 public:
  void Add(const std::string& kind, const std::string& tensor) { lists_[kind].push_back(tensor); }
  bool empty() const { return lists_.empty(); }

  std::string Text() const {
    std::string text;
    for (const auto& [kind, tensors] : lists_) {
      text += "\n  " + kind + " (" + std::to_string(tensors.size()) + "):";
      for (size_t i = 0; i < std::min(tensors.size(), kMaxNamesListed); ++i) text += "\n    " + tensors[i];
      if (tensors.size() > kMaxNamesListed) {
        text += "\n    and " + std::to_string(tensors.size() - kMaxNamesListed) + " more";
      }
    }
    return text;
  }

 private:
  std::map<std::string, std::vector<std::string>> lists_;
};

// Returns the entries by the network's names, without WrappersPrefix().
std::map<std::string, const TensorEntry*> ByName(const std::vector<TensorEntry>& entries,
                                                 const WeightNames& names) {
  const size_t prefix = WrappersPrefix(entries).size();
  std::map<std::string, const TensorEntry*> by_name;
  for (const TensorEntry& entry : entries) {
    if (IsBatchCounter(entry.name)) continue;
    const std::string name = entry.name.substr(prefix);
    if (names.IsUnused(name)) continue;
    const std::string known = names.Known(name);
    if (!by_name.emplace(known, &entry).second) {
      throw LoadError("the weights contain " + Quote(known) + " twice, under an old and a new name");
    }
  }
  return by_name;
}

// Returns the optional modules without any tensor in `present`, in the order of `expected`.
std::vector<std::string> AbsentModules(const std::map<std::string, const TensorEntry*>& present,
                                       const std::vector<TensorSpec>& expected) {
  std::vector<std::string> modules;
  std::set<std::string> found;
  for (const TensorSpec& spec : expected) {
    if (spec.optional_module.empty()) continue;
    if (modules.empty() || modules.back() != spec.optional_module) modules.push_back(spec.optional_module);
    if (present.contains(spec.name)) found.insert(spec.optional_module);
  }
  std::erase_if(modules, [&](const std::string& module) { return found.contains(module); });
  return modules;
}

// The first extents of two shapes that differ in nothing else; {0, 0} if they do.
std::pair<int64_t, int64_t> FirstExtents(const std::vector<int64_t>& expected,
                                         const std::vector<int64_t>& got) {
  const bool alike = !expected.empty() && expected.size() == got.size() &&
                     std::equal(expected.begin() + 1, expected.end(), got.begin() + 1);
  return alike ? std::pair(expected[0], got[0]) : std::pair<int64_t, int64_t>(0, 0);
}

// What to do if all tensors of wrong shapes, given by their first extents, differ by the number of classes.
std::string ClassesText(const std::set<std::pair<int64_t, int64_t>>& shapes) {
  if (shapes.size() != 1 || shapes.begin()->second == 0) return "";
  const std::string got = std::to_string(shapes.begin()->second);
  return "\n  the first extent is " + got + " instead of " + std::to_string(shapes.begin()->first) +
         "; if that is the number of classes, set the option classes to " + got;
}

std::string HintOf(ElementType type, bool may_be_quantized) {
  if (type != ElementType::kI8 || may_be_quantized) return "";
  return " (a file of torch.save holds no int8 weights: make a safetensors file of them with saccade "
         "quantize)";
}

LoadedWeights Match(const std::vector<TensorEntry>& entries, const std::vector<TensorSpec>& expected,
                    const WeightNames& names, std::shared_ptr<const FileContents> file) {
  const bool may_be_quantized = !IsStateDict(file->bytes());
  const WeightsSource source{std::move(file), SharedEntriesOf(entries)};
  std::map<std::string, const TensorEntry*> left = ByName(entries, names);
  LoadedWeights loaded{{}, AbsentModules(left, expected)};
  const std::set<std::string> absent(loaded.absent.begin(), loaded.absent.end());
  auto file_names = std::make_shared<std::map<std::string, std::string>>();
  Complaints complaints;
  std::set<std::pair<int64_t, int64_t>> classes;
  for (const TensorSpec& spec : expected) {
    if (absent.contains(spec.optional_module)) continue;
    const auto found = left.find(spec.name);
    if (found == left.end()) {
      complaints.Add("missing", Quote(names.Written(spec.name)) + " " + ShapeText(spec.shape));
      continue;
    }
    const TensorEntry& entry = *found->second;
    left.erase(found);
    std::optional<at::ScalarType> type = FloatingType(entry.type);
    const bool quantized = may_be_quantized && entry.type == ElementType::kI8 && MayBeQuantized(spec);
    if (quantized) type = at::kChar;
    (*file_names)[spec.name] = entry.name;
    if (entry.shape != spec.shape) {
      classes.insert(FirstExtents(spec.shape, entry.shape));
      complaints.Add("wrong shape", Quote(names.Written(spec.name)) + " expected " + ShapeText(spec.shape) +
                                        ", got " + ShapeText(entry.shape));
    } else if (!type) {
      complaints.Add("wrong type", Quote(names.Written(spec.name)) + " expected F16, BF16, F32 or F64, got " +
                                       Info(entry.type).safetensors_name +
                                       HintOf(entry.type, may_be_quantized));
    } else {
      loaded.tensors[spec.name] = Alias(entry, *type, source);
      if (quantized) {
        CheckSymmetric(spec.name, loaded.tensors[spec.name]);
        TakeScales(spec, left, source, loaded.tensors);
      }
    }
  }
  for (const auto& [name, entry] : left)
    complaints.Add("surplus", Quote(names.Written(name)) + " " + ShapeText(entry->shape));
  if (!complaints.empty()) {
    throw MisfitError(
        "the weights do not fit the network; check its options against those it was trained with." +
        complaints.Text() + ClassesText(classes));
  }
  loaded.tensors.file_names = std::move(file_names);
  return loaded;
}

// Parses the file. A .pt or .pth file that is neither an archive nor a pickle would be read as safetensors,
// and the error would speak of their header, which the file was never meant to have.
std::vector<TensorEntry> ParseNamed(const std::string& path, Bytes file) {
  const bool torch = path.ends_with(".pt") || path.ends_with(".pth");
  const std::string_view start(reinterpret_cast<const char*>(file.data()), file.size());
  try {
    return ParseWeights(file);
  } catch (const LoadError&) {
    if (!torch || start.starts_with("PK") || start.starts_with("\x80")) throw;
    throw LoadError(
        "is not a file that torch.save writes: such a file is a zip archive; save model.state_dict() again, "
        "or "
        "name a safetensors file .safetensors");
  }
}

}  // namespace

TensorMap Taken(TensorMap& tensors, const std::string& beginning) {
  TensorMap taken;
  taken.target = tensors.target;
  taken.file_names = tensors.file_names;
  for (auto at = tensors.lower_bound(beginning); at != tensors.end() && at->first.starts_with(beginning);) {
    const auto next = std::next(at);
    taken.insert(tensors.extract(at));
    at = next;
  }
  return taken;
}

LoadedWeights LoadWeights(const std::string& path, const std::vector<TensorSpec>& expected,
                          const WeightNames& names) {
  const std::shared_ptr<const FileContents> file = FileContents::Read(path, kMaxWeightsFileBytes);
  try {
    return Match(ParseNamed(path, file->bytes()), expected, names, file);
  } catch (const MisfitError& error) {
    throw MisfitError(path + ": " + error.what());
  } catch (const LoadError& error) {
    throw LoadError(path + ": " + error.what());
  }
}

}  // namespace saccade::models
