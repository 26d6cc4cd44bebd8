#include "server/engine/program_warm_up.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/device_lost.h"
#include "server/engine/named_tensors.h"
#include "server/engine/tensor_pass.h"
#include "server/engine/warm_up_item.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

// Size of one item. INVALID_ARGUMENT above kMaxWarmUpBytes.
absl::StatusOr<int64_t> BytesOf(const std::vector<int64_t>& dims, DataType type) {
  auto elements = ElementCount(dims);
  if (!elements.ok()) return elements.status();
  // An empty text takes four bytes.
  const int64_t bytes = *elements * static_cast<int64_t>(type == DataType::kBytes ? 4 : SizeOf(type));
  if (bytes <= kMaxWarmUpBytes) return bytes;
  return absl::InvalidArgumentError(
      absl::StrCat("an item is ", bytes, " bytes, expected at most ", kMaxWarmUpBytes));
}

// An input of `rows` identical rows.
absl::StatusOr<Tensor> MakeTensor(const WarmupInput& input, bool batched, int64_t rows) {
  const auto bytes = BytesOf(input.dims, input.type);
  if (!bytes.ok()) return bytes.status();
  const auto item = MakeWarmUpItem(input, *bytes);
  if (!item.ok()) return item.status();
  const auto all = std::make_shared<std::string>();
  for (int64_t i = 0; i < rows; ++i) all->append(*item);
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
    if (passes < 3 && took < kLongWarmUpPass)
      continue;  // TorchScript's executor profiles the first pass and optimises in the second
    options.learn(BucketOf(*request, settings), rows, took);
    return absl::OkStatus();
  }
}

// Empty if there is an input whose extents are left to requests.
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

std::function<absl::Status()> ProgramPass(const models::TensorProgram& program, const ModelSettings& settings,
                                          int64_t rows) {
  int64_t bytes = 0;
  const std::vector<WarmupInput> zeros = ZerosFor(settings, &bytes);
  if (zeros.empty() || (rows > 1 && rows * bytes > kMaxWarmUpBytes)) return nullptr;
  auto request = MakeRequest(zeros, settings, rows);
  if (!request.ok()) return nullptr;
  return [&program, &settings, request = *std::move(request)] {
    return RunTensors(program, settings, {&request}).status();
  };
}

std::optional<absl::StatusOr<std::vector<Tensor>>> ComputeRowOfZeros(const models::TensorProgram& program,
                                                                     const ModelSettings& settings) {
  int64_t bytes = 0;
  const std::vector<WarmupInput> zeros = ZerosFor(settings, &bytes);
  if (zeros.empty()) return std::nullopt;
  const auto request = MakeRequest(zeros, settings, /*rows=*/1);
  if (!request.ok()) return request.status();
  auto outputs = RunTensors(program, settings, {&*request});
  if (!outputs.ok()) return outputs.status();
  return std::move(outputs->front());
}

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
    if (rows > 1 && rows * bytes > kMaxWarmUpBytes) continue;
    const absl::Status warm = ComputeZeros(program, settings, zeros, rows, options);
    if (warm.ok()) continue;
    if (IsDeviceLost(warm)) return warm;
    Log(LogLevel::kWarning, "warm-up failed",
        {{"model", settings.name},
         {"warning",
          absl::StrCat("warming up with ", rows, " rows of zeros: ", std::string(warm.message()))}});
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace saccade::server
