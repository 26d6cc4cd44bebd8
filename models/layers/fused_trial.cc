#include "models/layers/fused_trial.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/randn.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <limits>

#include "models/api/error_text.h"

namespace saccade::models {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// So many numbers are drawn, which takes the CPU less than a millisecond, and repeated. A prime number, so
// that rows of a map differ.
constexpr int64_t kDrawn = 65'521;

// Returns a tensor as `x` with random numbers, undefined if `x` is.
at::Tensor RandomLike(const at::Tensor& x, uint64_t seed) {
  if (!x.defined()) return x;
  at::Generator random = at::detail::createCPUGenerator(seed);
  const at::Tensor drawn = at::randn({std::min(x.numel(), kDrawn)}, random, at::kFloat).to(x.options());
  const int64_t times = (x.numel() + kDrawn - 1) / kDrawn;
  at::Tensor like = at::empty_like(x);
  like.copy_(drawn.repeat({times}).narrow(0, 0, x.numel()).view(x.sizes()));
  return like;
}

// Returns why the results differ, or "".
std::string Difference(const at::Tensor& plain, const at::Tensor& fused, double tolerance) {
  if (fused.sizes() != plain.sizes() || fused.scalar_type() != plain.scalar_type())
    return "its result has another shape or type";
  if (fused.strides() != plain.strides()) return "its result has another layout";
  const at::Tensor expected = plain.to(at::kFloat);
  const double largest = expected.abs().max().item<double>();
  const double off = fused.to(at::kFloat).sub(expected).abs().max().item<double>();
  // The comparison is false if one of both is NaN.
  if (off <= tolerance * largest) return "";
  return "its result is off by " + std::to_string(off) + " where the largest is " + std::to_string(largest);
}

}  // namespace

double FusedTolerance(Precision precision) {
  switch (precision) {
    case Precision::kFloat32:
      return 1e-5;
    case Precision::kTf32:
      return 2e-3;
    case Precision::kFloat16:
      return 4e-3;
    case Precision::kBFloat16:
    case Precision::kInt8:
      break;
  }
  return 3e-2;
}

FusedVerdict FusedTrial::Run(const at::Tensor& x, const at::Tensor& other) const {
  try {
    const at::Tensor random = RandomLike(x, /*seed=*/1);
    const at::Tensor added = RandomLike(other, /*seed=*/2);
    at::Tensor expected = plain(random, added);
    // The fused function's result probably lies where these NaN were.
    at::full_like(expected, kNan);
    const double begin = now();
    at::Tensor got = fused(random, added);
    const double prepared = now() - begin;
    if (const std::string why = Difference(expected, got, tolerance); !why.empty())
      return {.fused = false, .reason = why};
    if (prepared > kMaxPreparationSeconds) {
      return {.fused = false, .reason = "its first call for a shape took " + std::to_string(prepared) + " s"};
    }
    const at::Tensor bad = at::full_like(random, kNan);
    expected = plain(bad, added);
    got = fused(bad, added);
    if (!got.isnan().equal(expected.isnan()))
      return {.fused = false, .reason = "it does not leave NaN as NaN"};

    const auto seconds = [&](const MapFunction& function) {
      const double start = now();
      for (int call = 0; call < kCallsOfRound; ++call) function(random, added);
      return now() - start;
    };
    double plain_seconds = std::numeric_limits<double>::infinity();
    double fused_seconds = plain_seconds;
    for (int round = 0; round < kRounds; ++round) {
      plain_seconds = std::min(plain_seconds, seconds(plain));
      fused_seconds = std::min(fused_seconds, seconds(fused));
    }
    if (fused_seconds < kWorthwhile * plain_seconds) return {.fused = true, .reason = ""};
    return {
        .fused = false,
        .reason = "it takes " + std::to_string(fused_seconds / plain_seconds) + " of the plain one's time"};
  } catch (const std::exception& error) {
    return {.fused = false, .reason = ErrorText(error), .threw = true};
  }
}

FusedVerdict FusedChoice::Get(const std::function<FusedVerdict()>& run) {
  const std::lock_guard lock(mutex_);
  if (trials_ > 0 && (!verdict_.threw || trials_ >= kMaxTrials)) return verdict_;
  verdict_ = run();
  ++trials_;
  if (verdict_.threw && trials_ >= kMaxTrials) {
    TORCH_WARN_ONCE("a layer computes without cuDNN's fused function, because trying it failed ", trials_,
                    " times; other layers of which this is true are not logged: ", verdict_.reason);
  }
  return verdict_;
}

}  // namespace saccade::models
