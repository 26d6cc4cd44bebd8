#include "kernels/bench/paper_counts.h"

#include <cmath>

namespace saccade::kernels {
namespace {

constexpr double kFloatBytes = 4;

// Multiply-adds of n queries over m keys, plus the linear transform of V at m positions.
double KaoMadds(double n, double m, double c) { return 2 * n * m * c + m * c * c; }

double RoundedUp(double floats) {
  constexpr double kImages = 16;
  return std::exp2(std::ceil(std::log2(kImages * kFloatBytes * floats)));
}

// Four maps of n * c floats, and four intermediate buffers of `between` floats.
double SaoBytes(double n, double c, double between) { return 4 * RoundedUp(n * c) + 4 * RoundedUp(between); }

// Per position: 2 * dk for queries and keys, 2 * dv for values and output, d for x, and d if reprojected.
// `between` is the size of the context or of the attention map.
double EaBytes(double n, double d, double dk, double dv, bool reprojected, double between) {
  return kFloatBytes * (n * (2 * dk + 2 * dv + (reprojected ? 2 : 1) * d) + between);
}

double EaConvolutions(double n, double d, double dk, double dv, bool reprojected) {
  return n * (2 * d * dk + (reprojected ? 2 : 1) * d * dv);
}

}  // namespace

Cost KaoAttentionCost(double h, double w, double c) {
  const double n = h * w;
  return {KaoMadds(n, n, c), kFloatBytes * (4 * n * n + 6 * n * c)};
}

Cost KaoPooledAttentionCost(double h, double w, double c) {
  const double n = h * w;
  const double m = n / 4;
  return {KaoMadds(n, m, c), kFloatBytes * (4 * n * m + 4 * n * c + 4 * m * c)};
}

Cost KaoKvCost(double h, double w, double c) {
  const double n = h * w;
  const double m = h + w;
  return {KaoMadds(n, m, c), kFloatBytes * (4 * n * m + 4 * n * c + 4 * m * c)};
}

Cost KaoQkvCost(double h, double w, double c) {
  const double m = h + w;
  return {KaoMadds(m, m, c), kFloatBytes * (4 * m * m + 2 * h * w * c + 8 * m * c)};
}

Cost SaoAttentionCost(double n, double c) { return {2 * n * n * c, SaoBytes(n, c, n * n)}; }

Cost SaoPooledAttentionCost(double n, double c) { return {2 * n * (n / 4) * c, SaoBytes(n, c, n * (n / 4))}; }

Cost SaoScaledAttentionCost(double n, double c) { return {2 * n * c * c, SaoBytes(n, c, c * c)}; }

Cost SaoCost(double n, double c) { return {4 * n * c, SaoBytes(n, c, n) + 8 * RoundedUp(c)}; }

Cost EaCost(double n, double d, double dk, double dv, bool reprojected) {
  return {EaConvolutions(n, d, dk, dv, reprojected) + n * 2 * dk * dv,
          EaBytes(n, d, dk, dv, reprojected, dk * dv)};
}

Cost NonLocalCost(double n, double d, double dk, double dv, bool reprojected) {
  return {EaConvolutions(n, d, dk, dv, reprojected) + n * n * (dk + dv),
          EaBytes(n, d, dk, dv, reprojected, n * n)};
}

double ExpAttMadds(double n, double c) { return n * n * c; }

double GsaMadds(double h, double w, double c, double heads) {
  const double n = h * w;
  return 2 * n * c * c / heads + 2 * n * (h + w) * c;
}

}  // namespace saccade::kernels
