#include "models/layers/fused_trial.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>

#include <algorithm>
#include <exception>
#include <limits>

#include "models/api/error_text.h"

namespace saccade::models {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

at::Tensor RandomLike(const at::Tensor& x) { return x.defined() ? at::empty_like(x).normal_() : x; }

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
    const at::Tensor random = RandomLike(x);
    const at::Tensor added = RandomLike(other);
    at::Tensor expected = plain(random, added);
    // The fused function's result probably lies where these NaN were.
    at::full_like(expected, kNan);
    const double begin = now();
    at::Tensor got = fused(random, added);
    const double prepared = now() - begin;
    if (const std::string why = Difference(expected, got, tolerance); !why.empty()) return {false, why};
    if (prepared > kMaxPreparationSeconds) {
      return {false, "its first call for a shape took " + std::to_string(prepared) + " s"};
    }
    const at::Tensor bad = at::full_like(random, kNan);
    expected = plain(bad, added);
    got = fused(bad, added);
    if (!got.isnan().equal(expected.isnan())) return {false, "it does not leave NaN as NaN"};

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
    if (fused_seconds < kWorthwhile * plain_seconds) return {true, ""};
    return {false, "it takes " + std::to_string(fused_seconds / plain_seconds) + " of the plain one's time"};
  } catch (const std::exception& error) {
    return {false, ErrorText(error)};
  }
}

const FusedVerdict& FusedChoice::Get(const std::function<FusedVerdict()>& run) {
  std::call_once(once_, [&] { verdict_ = run(); });
  return verdict_;
}

}  // namespace saccade::models
