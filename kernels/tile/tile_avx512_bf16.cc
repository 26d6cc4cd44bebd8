// The tile product for maps of bfloat16, on processors that multiply it themselves: both operands are rounded
// to bfloat16, sums are float32. Twice as many multiplications an instruction as in float32.
#include <immintrin.h>

#include <atomic>
#include <cstring>

#include "kernels/common/arena.h"
#include "kernels/tile/bfloat16_product.h"
#include "kernels/tile/tile_tables.h"

namespace saccade::kernels {
namespace {

// As in product_impl.h: rows and vectors of sums in registers, and terms of a sum at a time.
constexpr int kRows = 6;
constexpr int kVectors = 4;
constexpr int kLanes = 16;
constexpr int64_t kDepth = 256;
constexpr int64_t kPairs = kDepth / 2;
// Rows of a that are converted at a time, which all columns of b then use.
constexpr int64_t kBlockRows = 66;
constexpr int64_t kPanelRow = 8;  // entries of a panel's row; the last two are not used

__mmask16 FirstLanes(int64_t count) {
  return count >= kLanes ? __mmask16(0xFFFF) : static_cast<__mmask16>((1U << count) - 1U);
}

// Two neighbouring terms of a sum, in one 32-bit lane: the first in the lower half.
__m512i Pairs(__m512 first, __m512 second) {
  const auto low = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(first));
  const auto high = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(second));
  return _mm512_or_si512(_mm512_cvtepu16_epi32(low), _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
}

// The same pair in all lanes.
__m512bh Spread(uint32_t pair) {
  __m512i all = _mm512_set1_epi32(static_cast<int>(pair));
#ifdef __clang__
  // Clang 16 crashes when it folds the load into a vector of bfloat16.
  asm("" : "+v"(all));
#endif
  return reinterpret_cast<__m512bh>(all);
}

// Converts `depth` rows of up to kVectors vectors of b; to[pair][vector][lane].
void ConvertColumns(const float* b, int64_t b_row, int64_t depth, int64_t vectors, uint32_t* to) {
  for (int64_t i = 0; i < depth; i += 2) {
    for (int64_t v = 0; v < vectors; ++v) {
      const float* from = b + i * b_row + v * kLanes;
      const __m512 second = i + 1 < depth ? _mm512_loadu_ps(from + b_row) : _mm512_setzero_ps();
      _mm512_store_si512(to + (i / 2 * kVectors + v) * kLanes, Pairs(_mm512_loadu_ps(from), second));
    }
  }
}

// Converts rows of a whose entries are adjacent; to[row][pair].
void ConvertAdjacentEntries(const float* a, int64_t a_row, int64_t rows, int64_t depth, uint32_t* to) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < depth; i += 2 * kLanes) {
      const float* from = a + r * a_row + i;
      const __m512 low = _mm512_maskz_loadu_ps(FirstLanes(depth - i), from);
      const __m512 high = depth - i > kLanes
                              ? _mm512_maskz_loadu_ps(FirstLanes(depth - i - kLanes), from + kLanes)
                              : _mm512_setzero_ps();
      _mm512_storeu_si512(to + r * kPairs + i / 2, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
    }
  }
}

// Converts rows of a that are adjacent, entry by entry; to[panel of kRows rows][pair][row].
void ConvertAdjacentRows(const float* a, int64_t a_column, int64_t rows, int64_t depth, uint32_t* to) {
  for (int64_t r = 0; r < rows; r += kRows, to += kPairs * kPanelRow) {
    const auto lanes = static_cast<__mmask16>(FirstLanes(rows - r) & ((1U << kRows) - 1U));
    for (int64_t i = 0; i < depth; i += 2) {
      const float* from = a + i * a_column + r;
      const __m512 first = _mm512_maskz_loadu_ps(lanes, from);
      const __m512 second =
          i + 1 < depth ? _mm512_maskz_loadu_ps(lanes, from + a_column) : _mm512_setzero_ps();
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i / 2 * kPanelRow),
                          _mm512_castsi512_si256(Pairs(first, second)));
    }
  }
}

// c = a b for kCount rows and kWide vectors of columns, or c += if `accumulate`. Pair p of row r of a is
// a[r * row + p * pair].
template <int kCount, int kWide>
void RegisterProduct(int64_t pairs, const uint32_t* a, int64_t row, int64_t pair, const uint32_t* b, float* c,
                     int64_t c_row, bool accumulate) {
  __m512 sums[kCount][kWide];
  for (int r = 0; r < kCount; ++r) {
    for (int v = 0; v < kWide; ++v) sums[r][v] = _mm512_setzero_ps();
  }
  for (int64_t p = 0; p < pairs; ++p) {
    __m512bh values[kWide];
    for (int v = 0; v < kWide; ++v) {
      values[v] = reinterpret_cast<__m512bh>(_mm512_load_si512(b + (p * kVectors + v) * kLanes));
    }
    for (int r = 0; r < kCount; ++r) {
      const __m512bh factor = Spread(a[r * row + p * pair]);
      for (int v = 0; v < kWide; ++v) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], factor, values[v]);
    }
  }
  for (int r = 0; r < kCount; ++r) {
    for (int v = 0; v < kWide; ++v) {
      float* to = c + r * c_row + v * kLanes;
      _mm512_storeu_ps(to, accumulate ? _mm512_add_ps(_mm512_loadu_ps(to), sums[r][v]) : sums[r][v]);
    }
  }
}

using Kernel = void (*)(int64_t pairs, const uint32_t* a, int64_t row, int64_t pair, const uint32_t* b,
                        float* c, int64_t c_row, bool accumulate);

// By rows - 1 and vectors - 1.
template <int kCount>
constexpr Kernel kOfRows[kVectors] = {&RegisterProduct<kCount, 1>, &RegisterProduct<kCount, 2>,
                                      &RegisterProduct<kCount, 3>, &RegisterProduct<kCount, 4>};
constexpr const Kernel* kKernels[kRows] = {kOfRows<1>, kOfRows<2>, kOfRows<3>,
                                           kOfRows<4>, kOfRows<5>, kOfRows<6>};

// A block of rows of a, converted.
struct RowBlock {
  const uint32_t* pairs;
  int64_t rows;
  bool adjacent_rows;
};

void BlockProduct(const RowBlock& block, int64_t n, int64_t depth, const float* b, int64_t b_row, float* c,
                  int64_t c_row, bool accumulate) {
  alignas(64) uint32_t columns[kPairs * kVectors * kLanes];
  for (int64_t j = 0; j < n; j += kVectors * kLanes) {
    const int64_t left = (n - j + kLanes - 1) / kLanes;
    const int64_t vectors = left < kVectors ? left : kVectors;
    ConvertColumns(b + j, b_row, depth, vectors, columns);
    for (int64_t r = 0; r < block.rows; r += kRows) {
      const int64_t rows = block.rows - r < kRows ? block.rows - r : kRows;
      const uint32_t* from =
          block.pairs + (block.adjacent_rows ? r / kRows * kPairs * kPanelRow : r * kPairs);
      const int64_t row = block.adjacent_rows ? 1 : kPairs;
      const int64_t pair = block.adjacent_rows ? kPanelRow : 1;
      kKernels[rows - 1][vectors - 1]((depth + 1) / 2, from, row, pair, columns, c + r * c_row + j, c_row,
                                      accumulate);
    }
  }
}

void ProductInBFloat16(int64_t m, int64_t n, int64_t k, const MatrixView<float>& a, const float* b,
                       int64_t b_row, float* c, int64_t c_row, bool accumulate) {
  if (a.row != 1 && a.column != 1) __builtin_trap();  // Programming error, see tile.h.
  constexpr int64_t kPanels = kBlockRows / kRows;
  static_assert(kBlockRows % kRows == 0 && kBlockRows * kPairs <= kPanels * kPairs * kPanelRow);
  alignas(64) uint32_t pairs[kPanels * kPairs * kPanelRow];
  for (int64_t from = 0; from < k || from == 0; from += kDepth) {
    const int64_t depth = k - from < kDepth ? k - from : kDepth;
    for (int64_t r = 0; r < m; r += kBlockRows) {
      const RowBlock block{pairs, m - r < kBlockRows ? m - r : kBlockRows, a.row == 1};
      const float* start = a.data + r * a.row + from * a.column;
      if (block.adjacent_rows) {
        ConvertAdjacentRows(start, a.column, block.rows, depth, pairs);
      } else {
        ConvertAdjacentEntries(start, a.row, block.rows, depth, pairs);
      }
      BlockProduct(block, n, depth, b + from * b_row, b_row, c + r * c_row, c_row, accumulate || from > 0);
    }
  }
}

// --- The same by blocks that a BFloat16Product multiplies: AMX.

std::atomic<BFloat16Product> block_product = nullptr;

static_assert(kBlockDepth / 2 == kPairs && kBlockSide == kVectors * kLanes && kBlockStep == kLanes);
// ConvertAdjacentEntries() converts so many terms at a time, with zeros behind the last.
static_assert(kBlockDepthStep == 2 * kLanes);

// What one thread multiplies at a time, as BFloat16Product wants it.
struct alignas(64) BlockOperands {
  uint32_t a[kBlockSide * kPairs];
  uint32_t b[kPairs * kBlockSide];
  float c[kBlockSide * kBlockSide];
  // kLanes rows of a, pair by pair.
  uint32_t pairs[kPairs * kLanes];
};

// Converts rows of a that are adjacent, entry by entry, to rows of pairs. `padded` is the number of pairs
// with the zeros behind the last.
void ConvertAdjacentRowsToBlock(const float* a, int64_t a_column, int64_t rows, int64_t depth, int64_t padded,
                                BlockOperands& block) {
  for (int64_t r = 0; r < rows; r += kLanes) {
    const __mmask16 lanes = FirstLanes(rows - r);
    for (int64_t i = 0; i < depth; i += 2) {
      const float* from = a + i * a_column + r;
      const __m512 first = _mm512_maskz_loadu_ps(lanes, from);
      const __m512 second =
          i + 1 < depth ? _mm512_maskz_loadu_ps(lanes, from + a_column) : _mm512_setzero_ps();
      _mm512_store_si512(block.pairs + i / 2 * kLanes, Pairs(first, second));
    }
    for (int64_t p = (depth + 1) / 2; p < padded; ++p)
      _mm512_store_si512(block.pairs + p * kLanes, _mm512_setzero_si512());
    // Moves bits, whatever they mean.
    Avx512TileCode().transpose(reinterpret_cast<const float*>(block.pairs), padded, kLanes, kLanes,
                               reinterpret_cast<float*>(block.a + r * kPairs), kPairs);
  }
}

// to = sums for `rows` rows and `vectors` vectors of columns, or to += if `accumulate`.
void AddBlock(const float* sums, int64_t rows, int64_t vectors, float* to, int64_t to_row, bool accumulate) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t v = 0; v < vectors; ++v) {
      const __m512 sum = _mm512_load_ps(sums + r * kBlockSide + v * kLanes);
      float* entry = to + r * to_row + v * kLanes;
      _mm512_storeu_ps(entry, accumulate ? _mm512_add_ps(_mm512_loadu_ps(entry), sum) : sum);
    }
  }
}

void ProductInBlocks(int64_t m, int64_t n, int64_t k, const MatrixView<float>& a, const float* b,
                     int64_t b_row, float* c, int64_t c_row, bool accumulate) {
  if (a.row != 1 && a.column != 1) __builtin_trap();  // Programming error, see tile.h.
  if (k == 0) return ProductInBFloat16(m, n, k, a, b, b_row, c, c_row, accumulate);
  const BFloat16Product product = block_product.load(std::memory_order_relaxed);
  BlockOperands block;
  for (int64_t from = 0; from < k; from += kDepth) {
    const int64_t depth = k - from < kDepth ? k - from : kDepth;
    const int64_t padded = RoundUp(depth, kBlockDepthStep) / 2;
    for (int64_t j = 0; j < n; j += kBlockSide) {
      const int64_t left = (n - j + kLanes - 1) / kLanes;
      const int64_t vectors = left < kVectors ? left : kVectors;
      ConvertColumns(b + from * b_row + j, b_row, depth, vectors, block.b);
      const int64_t converted = (depth + 1) / 2;
      std::memset(block.b + converted * kBlockSide, 0, (padded - converted) * kBlockSide * sizeof(uint32_t));
      for (int64_t r = 0; r < m; r += kBlockSide) {
        const int64_t rows = m - r < kBlockSide ? m - r : kBlockSide;
        const int64_t padded_rows = RoundUp(rows, kBlockStep);
        const float* start = a.data + r * a.row + from * a.column;
        if (a.row == 1) {
          ConvertAdjacentRowsToBlock(start, a.column, rows, depth, padded, block);
        } else {
          ConvertAdjacentEntries(start, a.row, rows, depth, block.a);
          std::memset(block.a + rows * kPairs, 0, (padded_rows - rows) * kPairs * sizeof(uint32_t));
        }
        product(padded_rows, vectors * kLanes, 2 * padded, block.a, block.b, block.c);
        AddBlock(block.c, rows, vectors, c + r * c_row + j, c_row, accumulate || from > 0);
      }
    }
  }
}

}  // namespace

const TileCode<float>& BlockTileCode(BFloat16Product product) {
  block_product.store(product, std::memory_order_relaxed);
  static const TileCode<float> code = [] {
    TileCode<float> made = Avx512TileCode();
    made.product = &ProductInBlocks;
    return made;
  }();
  return code;
}

const TileCode<float>& Avx512BFloat16TileCode() {
  static const TileCode<float> code = [] {
    TileCode<float> made = Avx512TileCode();
    made.product = &ProductInBFloat16;
    return made;
  }();
  return code;
}

}  // namespace saccade::kernels
