#include "server/pipeline/program_warm_up.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/core/bytes_elements.h"
#include "server/pipeline/named_tensors.h"
#include "server/pipeline/tensor_pass.h"

namespace saccade::server {
namespace {

constexpr int64_t kMostBytes = int64_t{256} << 20;

// A pass that took longer is close enough to the next one to learn from.
constexpr absl::Duration kLong = absl::Milliseconds(500);

// Of one item.
absl::StatusOr<int64_t> BytesOf(const std::vector<int64_t>& dims, DataType type) {
  auto elements = ElementCount(dims);
  if (!elements.ok()) return elements.status();
  // A text of no length is four bytes.
  const int64_t bytes = *elements * static_cast<int64_t>(type == DataType::kBytes ? 4 : SizeOf(type));
  if (bytes <= kMostBytes) return bytes;
  return absl::InvalidArgumentError(absl::StrCat("an item is ", bytes, " bytes large, at most ", kMostBytes));
}

template <typename T>
void Fill(std::string* item, const std::function<T()>& next) {
  auto* const values = reinterpret_cast<T*>(item->data());
  std::generate(values, values + item->size() / sizeof(T), next);
}

// Floats from 0 to 1, integers and truths 0 or 1; texts stay empty.
void FillRandom(DataType type, std::string* item) {
  // Always the same, so that a failure comes again.
  std::minstd_rand random(1);
  const auto unit = [&random] { return std::uniform_real_distribution<float>()(random); };
  const auto bit = [&random] { return static_cast<int>(random() >> 8 & 1); };
  const auto half = [&](uint16_t least, int bits) {  // from 0.5 on, with a random mantissa
    return [&random, least, bits] { return static_cast<uint16_t>(least | random() % (1U << bits)); };
  };
  if (type == DataType::kBytes) return;
  if (type == DataType::kFp32) return Fill<float>(item, unit);
  if (type == DataType::kFp64) return Fill<double>(item, unit);
  if (type == DataType::kFp16) return Fill<uint16_t>(item, half(0x3800, 10));
  if (type == DataType::kBf16) return Fill<uint16_t>(item, half(0x3F00, 7));
  switch (SizeOf(type)) {
    case 1:
      return Fill<uint8_t>(item, bit);
    case 2:
      return Fill<uint16_t>(item, bit);
    case 4:
      return Fill<uint32_t>(item, bit);
    default:
      return Fill<uint64_t>(item, bit);
  }
}

absl::StatusOr<std::string> ReadItem(const WarmupInput& input, int64_t bytes) {
  std::ifstream file(input.file_path, std::ios::binary);
  // Of texts only the file knows how many bytes they are.
  const int64_t most = input.type == DataType::kBytes ? kMostBytes : bytes;
  std::string item(static_cast<size_t>(most), '\0');
  file.read(item.data(), static_cast<std::streamsize>(most));
  item.resize(static_cast<size_t>(file.gcount()));
  const bool whole = file.eof() || file.peek() == std::ifstream::traits_type::eof();
  if (input.type == DataType::kBytes && whole) {
    const auto texts = SplitBytes(BytePieces(item), *ElementCount(input.dims));
    if (texts.ok()) return item;
    return absl::InvalidArgumentError(absl::StrCat(input.file_path, ": ", texts.status().message()));
  }
  if (whole && static_cast<int64_t>(item.size()) == bytes) return item;
  return absl::InvalidArgumentError(absl::StrCat(input.file_path, ": expected exactly the ", bytes,
                                                 " bytes of one item, as a request would have them"));
}

// The input of so many rows that are all the same.
absl::StatusOr<Tensor> MakeTensor(const WarmupInput& input, bool batched, int64_t rows) {
  const auto bytes = BytesOf(input.dims, input.type);
  if (!bytes.ok()) return bytes.status();
  std::string item(static_cast<size_t>(*bytes), '\0');
  if (input.data == WarmupInput::Data::kRandom) FillRandom(input.type, &item);
  if (input.data == WarmupInput::Data::kFile) {
    auto read = ReadItem(input, *bytes);
    if (!read.ok()) return read.status();
    item = *std::move(read);
  }
  const auto all = std::make_shared<std::string>();
  for (int64_t i = 0; i < rows; ++i) all->append(item);
  Tensor tensor{.name = input.name, .type = input.type, .shape = input.dims, .data = BytePieces(*all, all)};
  if (batched) tensor.shape.insert(tensor.shape.begin(), rows);
  return tensor;
}

absl::StatusOr<NamedTensors> MakeRequest(const std::vector<WarmupInput>& inputs,
                                         const ModelSettings& settings, int64_t rows) {
  NamedTensors request{.tensors = {}, .rows = rows};
  for (const WarmupInput& input : inputs) {
    auto tensor = MakeTensor(input, settings.has_batch_dimension, rows);
    if (!tensor.ok())
      return absl::Status(tensor.status().code(),
                          absl::StrCat("input '", input.name, "': ", tensor.status().message()));
    request.tensors.push_back(*std::move(tensor));
  }
  if (absl::Status fits = CheckTensors(request, settings); !fits.ok()) return fits;
  return request;
}

absl::Status ComputeWarmup(const models::TensorProgram& program, const ModelSettings& settings,
                           const Warmup& warmup) {
  const auto request = MakeRequest(warmup.inputs, settings, warmup.batch_size);
  if (!request.ok()) return request.status();
  for (int i = 0; i < warmup.count; ++i) {
    auto outputs = RunTensors(program, settings, {&*request});
    if (!outputs.ok()) return outputs.status();
  }
  return absl::OkStatus();
}

absl::Status ComputeZeros(const models::TensorProgram& program, const ModelSettings& settings,
                          const std::vector<WarmupInput>& zeros, int64_t rows,
                          const Engine::WarmUpOptions& options) {
  const auto request = MakeRequest(zeros, settings, rows);
  if (!request.ok()) return request.status();
  for (int passes = 1;; ++passes) {
    const absl::Time start = options.clock->Now();
    auto outputs = RunTensors(program, settings, {&*request});
    if (!outputs.ok()) return outputs.status();
    const absl::Duration took = options.clock->Now() - start;
    if (passes < 3 && took < kLong)
      continue;  // TorchScript's executor looks at the first, and plans the second
    options.learn(BucketOf(*request, settings), rows, took);
    return absl::OkStatus();
  }
}

// None if there is an input whose dims the request decides.
std::vector<WarmupInput> ZerosFor(const ModelSettings& settings, int64_t* bytes) {
  std::vector<WarmupInput> zeros;
  for (const TensorSpec& spec : settings.inputs) {
    const bool fixed = std::all_of(spec.dims.begin(), spec.dims.end(), [](int64_t dim) { return dim > 0; });
    const auto size = fixed ? BytesOf(spec.dims, spec.type) : absl::InvalidArgumentError("its dims are free");
    if (!size.ok()) return {};
    *bytes += *size;
    zeros.push_back(
        {.name = spec.name, .type = spec.type, .dims = spec.dims, .data = WarmupInput::Data::kZero});
  }
  return zeros;
}

}  // namespace

absl::Status WarmUpProgram(const models::TensorProgram& program, const ModelSettings& settings,
                           const Engine::WarmUpOptions& options) {
  for (const Warmup& warmup : settings.warmups) {
    if (absl::Status warm = ComputeWarmup(program, settings, warmup); !warm.ok())
      return absl::Status(warm.code(), absl::StrCat("model_warmup '", warmup.name, "': ", warm.message()));
  }
  int64_t bytes = 0;
  const std::vector<WarmupInput> zeros = ZerosFor(settings, &bytes);
  if (zeros.empty()) return absl::OkStatus();
  for (const int64_t rows : std::set<int64_t>{1, settings.batching.max_batch_size}) {
    if (rows > 1 && rows * bytes > kMostBytes) continue;
    if (absl::Status warm = ComputeZeros(program, settings, zeros, rows, options); !warm.ok()) {
      return absl::Status(warm.code(),
                          absl::StrCat("warming up with ", rows, " rows of zeros: ", warm.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace saccade::server
