#include "kernels/tile/bfloat16_product.h"

#include <exception>
#include <memory>

#include "kernels/common/bfloat16.h"

namespace saccade::kernels {
namespace {

// A whole number from -4 to 4, which bfloat16 holds exactly.
float WholeNumber(int64_t i, int64_t j) { return static_cast<float>((i * 7 + j * 5 + i * j) % 9 - 4); }

uint32_t PairOf(float first, float second) {
  return static_cast<uint32_t>(BFloat16(first).bits) | static_cast<uint32_t>(BFloat16(second).bits) << 16;
}

struct alignas(64) ProductBlocks {
  uint32_t a[kBlockSide * kBlockDepth / 2];
  uint32_t b[kBlockDepth / 2 * kBlockSide];
  float c[kBlockSide * kBlockSide];
};

bool ComputesBlock(BFloat16Product product, int64_t rows, int64_t columns, int64_t depth) {
  const auto memory = std::make_unique<ProductBlocks>();
  ProductBlocks& blocks = *memory;
  for (int64_t p = 0; p < depth / 2; ++p) {
    for (int64_t r = 0; r < rows; ++r)
      blocks.a[r * kBlockDepth / 2 + p] = PairOf(WholeNumber(r, 2 * p), WholeNumber(r, 2 * p + 1));
    for (int64_t j = 0; j < columns; ++j)
      blocks.b[p * kBlockSide + j] = PairOf(WholeNumber(2 * p, j + 3), WholeNumber(2 * p + 1, j + 3));
  }
  product(rows, columns, depth, blocks.a, blocks.b, blocks.c);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < columns; ++j) {
      float sum = 0;
      for (int64_t i = 0; i < depth; ++i) sum += WholeNumber(r, i) * WholeNumber(i, j + 3);
      if (blocks.c[r * kBlockSide + j] != sum) return false;
    }
  }
  return true;
}

}  // namespace

bool ComputesBlocks(BFloat16Product product) {
  try {
    return ComputesBlock(product, kBlockSide, kBlockSide, kBlockDepth) &&
           ComputesBlock(product, kBlockStep, kBlockStep, kBlockDepthStep) &&
           ComputesBlock(product, 3 * kBlockStep, 2 * kBlockStep, 3 * kBlockDepthStep);
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace saccade::kernels
