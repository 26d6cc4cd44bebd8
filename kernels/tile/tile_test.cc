// Compares every loop of every instruction set that this processor supports with a float64 loop over single
// entries.
#include "kernels/tile/tile.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/common/arena.h"
#include "kernels/common/bfloat16.h"
#include "kernels/common/testing/below_tensors.h"
#include "kernels/tile/bfloat16_product.h"
#include "kernels/tile/tile_tables.h"

namespace saccade::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <typename A>
class Random {
 public:
  std::vector<A> Values(int64_t count, double spread = 1) {
    std::normal_distribution<double> normal(0.1, spread);
    std::vector<A> values(static_cast<size_t>(count));
    for (A& value : values) value = static_cast<A>(normal(engine_));
    return values;
  }
  int64_t Pick(int64_t from, int64_t to) { return std::uniform_int_distribution<int64_t>(from, to)(engine_); }

 private:
  std::mt19937 engine_{7};
};

template <typename A>
void ExpectNear(const std::vector<A>& got, const std::vector<double>& expected, double tolerance) {
  double difference = 0;
  double norm = 0;
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    difference += (got[i] - expected[i]) * (got[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  EXPECT_LE(std::sqrt(difference), tolerance * std::max(std::sqrt(norm), 1e-30));
}

template <typename A>
class TileCodeTest {
 public:
  explicit TileCodeTest(CpuIsa isa, Dtype dtype = Dtype::kFloat32)
      : code_(TileCodeFor<A>(isa, dtype)), rounds_(dtype == Dtype::kBFloat16) {}
  // `code` multiplies in bfloat16.
  explicit TileCodeTest(const TileCode<A>& code) : code_(code), rounds_(true) {}

  void Products() {
    for (int round = 0; round < 60; ++round) {
      const int64_t m = random_.Pick(0, 40), n = random_.Pick(1, 90),
                    k = round % 7 == 0 ? random_.Pick(500, 1100) : random_.Pick(0, 70);
      const bool adjacent_rows = round % 2 == 0;
      const bool accumulate = round % 3 == 0;
      const int64_t a_stride = (adjacent_rows ? m : k) + random_.Pick(0, 5);
      const int64_t b_row = RoundUp(n, kRowPadding), c_row = b_row + 16;
      const auto a = Operand(std::max<int64_t>(a_stride * (adjacent_rows ? k : m), 1));
      const auto b = Operand(std::max<int64_t>(k, 1) * b_row);
      auto c = random_.Values(std::max<int64_t>(m, 1) * c_row);
      const MatrixView<A> view =
          adjacent_rows ? MatrixView<A>{a.data(), 1, a_stride} : MatrixView<A>{a.data(), a_stride, 1};
      std::vector<double> expected;
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double sum = accumulate ? c[i * c_row + j] : 0;
          for (int64_t l = 0; l < k; ++l) {
            sum += static_cast<double>(a[i * view.row + l * view.column]) * b[l * b_row + j];
          }
          expected.push_back(sum);
        }
      }
      code_.product(m, n, k, view, b.data(), b_row, c.data(), c_row, accumulate);
      ExpectNear(Entries(c, m, n, c_row), expected, Bound());
    }
  }

  void Softmaxes() {
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 16}, {7, 64}, {64, 48}, {113, 64}}) {
      auto x = random_.Values(rows * 64, 30);
      x[0] = 400;  // makes the other entries vanish
      const auto expected = SoftmaxOf(x, rows, columns);
      auto whole = x;
      code_.softmax(whole.data(), rows, columns, 64);
      ExpectNear(Entries(whole, rows, columns, 64), expected, Bound());
      ExpectNear(Online(x, rows, columns), expected, Bound());
    }
  }

  // Converts maps to tiles and back: positions adjacent, channels adjacent, or neither; odd lengths and
  // channel counts.
  template <typename T>
  void Strips(Dtype dtype) {
    for (const int64_t channels : {1, 5, 16, 33, 70}) {
      for (const int64_t length : {1, 3, 16, 37, 64}) {
        for (const auto& [channel_stride, position_stride] :
             {std::pair<int64_t, int64_t>{64 + 3, 1}, {1, channels + 2}, {2 * 64, 2}}) {
          const int64_t elements = channels * channel_stride + length * position_stride;
          std::vector<T> map;
          for (const float value : Random<float>().Values(elements)) map.push_back(T(value));
          std::vector<A> tile(static_cast<size_t>(channels * 64), A{0});
          std::vector<A> matrix(static_cast<size_t>(length * RoundUp(channels, 16)), A{0});
          const Strip strip{map.data(), dtype, channel_stride, position_stride};
          code_.load(strip, channels, length, tile.data(), 64);
          code_.load_transposed(strip, channels, length, matrix.data(), RoundUp(channels, 16));
          std::vector<T> back(map.size(), T(kNan));
          code_.store(tile.data(), 64, channels, length,
                      {back.data(), dtype, channel_stride, position_stride});
          for (int64_t c = 0; c < channels; ++c) {
            for (int64_t i = 0; i < length; ++i) {
              const T value = map[c * channel_stride + i * position_stride];
              ASSERT_EQ(tile[c * 64 + i], static_cast<A>(value));
              ASSERT_EQ(matrix[i * RoundUp(channels, 16) + c], static_cast<A>(value));
              ASSERT_EQ(static_cast<A>(back[c * channel_stride + i * position_stride]),
                        static_cast<A>(value));
            }
          }
        }
      }
    }
  }

  void RowsAndColumns() {
    const int64_t rows = 37, columns = 64;
    const auto x = random_.Values(rows * columns);
    const auto scale = random_.Values(rows), shift = random_.Values(rows),
               add = random_.Values(rows * columns);
    const auto factor = random_.Values(columns);
    auto affine = x;
    code_.affine(affine.data(), rows, columns, columns, scale.data(), shift.data(), add.data());
    auto scaled = x;
    code_.scale_columns(scaled.data(), rows, columns, columns, factor.data());
    std::vector<A> transposed(static_cast<size_t>(columns * 48));
    code_.transpose(x.data(), rows, columns, columns, transposed.data(), 48);
    std::vector<A> row_sums(rows, A{1}), column_sums(columns, A{2});
    code_.add_row_sums(x.data(), rows, 61, columns, row_sums.data());
    code_.add_column_sums(x.data(), rows, columns, columns, column_sums.data());
    std::vector<double> rows_expected(rows, 1), columns_expected(columns, 2);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t at = r * columns + j;
        EXPECT_NEAR(affine[at], x[at] * scale[r] + shift[r] + add[at], 1e-6);
        EXPECT_EQ(scaled[at], x[at] * factor[j]);
        EXPECT_EQ(transposed[j * 48 + r], x[at]);
        rows_expected[r] += j < 61 ? x[at] : A{0};
        columns_expected[j] += x[at];
      }
    }
    ExpectNear(row_sums, rows_expected, Bound());
    ExpectNear(column_sums, columns_expected, Bound());
  }

 private:
  // Values that rounding to bfloat16 does not change, if that is what the products do: the rest of their
  // arithmetic must then be as exact as float32's.
  std::vector<A> Operand(int64_t count) {
    std::vector<A> values = random_.Values(count);
    for (A& value : values) {
      if (rounds_) value = static_cast<A>(static_cast<float>(BFloat16(static_cast<float>(value))));
    }
    return values;
  }

  static double Bound() { return std::is_same_v<A, float> ? 5e-7 : 1e-14; }

  static std::vector<A> Entries(const std::vector<A>& x, int64_t rows, int64_t columns, int64_t row) {
    std::vector<A> entries;
    for (int64_t r = 0; r < rows; ++r) entries.insert(entries.end(), &x[r * row], &x[r * row] + columns);
    return entries;
  }

  static std::vector<double> SoftmaxOf(const std::vector<A>& x, int64_t rows, int64_t columns) {
    std::vector<double> result(static_cast<size_t>(rows * columns));
    for (int64_t j = 0; j < columns; ++j) {
      double max = -std::numeric_limits<double>::infinity();
      for (int64_t r = 0; r < rows; ++r) max = std::max<double>(max, x[r * 64 + j]);
      double sum = 0;
      for (int64_t r = 0; r < rows; ++r) sum += std::exp(x[r * 64 + j] - max);
      for (int64_t r = 0; r < rows; ++r) result[r * columns + j] = std::exp(x[r * 64 + j] - max) / sum;
    }
    return result;
  }

  // The same softmax in steps of ten rows, as keys arrive.
  std::vector<A> Online(const std::vector<A>& x, int64_t rows, int64_t columns) {
    std::vector<A> max(64, -std::numeric_limits<A>::infinity()), sum(64, A{0}), rescale(64, A(kNan));
    std::vector<A> result = x;
    for (int64_t r = 0; r < rows; r += 10) {
      const int64_t step = std::min<int64_t>(10, rows - r);
      code_.online_softmax(&result[r * 64], step, columns, 64, max.data(), sum.data(), rescale.data());
      if (r > 0) code_.scale_columns(result.data(), r, columns, 64, rescale.data());
    }
    std::vector<A> entries = Entries(result, rows, columns, 64);
    for (size_t i = 0; i < entries.size(); ++i) entries[i] /= sum[i % columns];
    return entries;
  }

  const TileCode<A>& code_;
  const bool rounds_;
  Random<A> random_;
};

class TileOnIsa : public testing::TestWithParam<CpuIsa> {};

TEST_P(TileOnIsa, Products) { TileCodeTest<float>(GetParam()).Products(); }
TEST_P(TileOnIsa, ProductsOfBFloat16) { TileCodeTest<float>(GetParam(), Dtype::kBFloat16).Products(); }
TEST_P(TileOnIsa, Softmaxes) { TileCodeTest<float>(GetParam()).Softmaxes(); }
TEST_P(TileOnIsa, RowsAndColumns) { TileCodeTest<float>(GetParam()).RowsAndColumns(); }
TEST_P(TileOnIsa, StripsOfFloat32) { TileCodeTest<float>(GetParam()).Strips<float>(Dtype::kFloat32); }
TEST_P(TileOnIsa, StripsOfBFloat16) { TileCodeTest<float>(GetParam()).Strips<BFloat16>(Dtype::kBFloat16); }
INSTANTIATE_TEST_SUITE_P(Isa, TileOnIsa, testing::ValuesIn(InstructionSets()));

// Each operand is rounded once, to the nearest: 1 + 2^-9 becomes 1.
TEST(TileTest, ProductsOfBFloat16RoundTheirOperands) {
  if (!MultipliesBFloat16()) GTEST_SKIP() << "this processor does not multiply bfloat16 itself";
  std::vector<float> a(3, 1 + 0x1p-9F), b(3 * kRowPadding, 2), c(kRowPadding, kNan);
  const auto& code = TileCodeFor<float>(BestCpuIsa(), Dtype::kBFloat16);
  code.product(1, 16, 3, {a.data(), 3, 1}, b.data(), kRowPadding, c.data(), kRowPadding, false);
  EXPECT_EQ(c[0], 6);
  const auto& exact = TileCodeFor<float>(BestCpuIsa());
  exact.product(1, 16, 3, {a.data(), 3, 1}, b.data(), kRowPadding, c.data(), kRowPadding, false);
  EXPECT_EQ(c[0], 6 * (1 + 0x1p-9F));
}

// A NaN or an infinity in an operand reaches the result.
TEST(TileTest, ProductsOfBFloat16KeepWhatIsNotFinite) {
  const auto& code = TileCodeFor<float>(BestCpuIsa(), Dtype::kBFloat16);
  for (const float bad : {kNan, std::numeric_limits<float>::infinity()}) {
    std::vector<float> a = {1, bad, 1}, b(3 * kRowPadding, 2), c(kRowPadding, 0);
    code.product(1, 16, 3, {a.data(), 3, 1}, b.data(), kRowPadding, c.data(), kRowPadding, false);
    EXPECT_FALSE(std::isfinite(c[0])) << bad;
  }
}

// A product of blocks as AMX computes it, entry by entry.
void PlainBlocks(int64_t rows, int64_t columns, int64_t depth, const uint32_t* a, const uint32_t* b,
                 float* c) {
  EXPECT_TRUE(rows % 16 == 0 && rows <= 64 && columns % 16 == 0 && columns <= 64);
  EXPECT_TRUE(depth % 32 == 0 && depth > 0 && depth <= 256);
  const auto half = [](uint32_t pair, int which) {
    return std::bit_cast<float>(which == 0 ? pair << 16 : pair & 0xFFFF0000U);
  };
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < columns; ++j) {
      float sum = 0;
      for (int64_t i = 0; i < depth; ++i) {
        const int which = static_cast<int>(i % 2);
        sum += half(a[r * 128 + i / 2], which) * half(b[i / 2 * 64 + j], which);
      }
      c[r * 64 + j] = sum;
    }
  }
}

TEST(TileTest, RightBlocksAreToldFromWrongOnes) {
  EXPECT_TRUE(ComputesBlocks(&PlainBlocks));
  EXPECT_FALSE(ComputesBlocks(
      [](int64_t rows, int64_t columns, int64_t depth, const uint32_t* a, const uint32_t* b, float* c) {
        PlainBlocks(rows, columns, depth, a, b, c);
        c[rows * 64 - 64 + columns - 1] += 1;
      }));
  EXPECT_FALSE(ComputesBlocks([](int64_t, int64_t, int64_t, const uint32_t*, const uint32_t*, float*) {
    throw std::runtime_error("could not generate a kernel");
  }));
}

#if defined(__x86_64__)
TEST(TileTest, ProductsByBlocks) {
  if (!MultipliesBFloat16()) GTEST_SKIP() << "this processor does not multiply bfloat16 itself";
  TileCodeTest<float>(BlockTileCode(&PlainBlocks)).Products();
}

TEST(TileTest, ProductsByBlocksKeepWhatIsNotFiniteInItsRow) {
  if (!MultipliesBFloat16()) GTEST_SKIP() << "this processor does not multiply bfloat16 itself";
  std::vector<float> a = {1, kNan, 1, 1, 1, 1}, b(3 * kRowPadding, 2), c(2 * kRowPadding, 0);
  BlockTileCode(&PlainBlocks)
      .product(2, 16, 3, {a.data(), 3, 1}, b.data(), kRowPadding, c.data(), kRowPadding, false);
  EXPECT_TRUE(std::isnan(c[0]));
  EXPECT_EQ(c[kRowPadding], 6);
}

// Ends the process with 0 if maps of bfloat16 get our own loops, with 1 if they get products of blocks.
[[noreturn]] void ExitWithLoops() {
  SetBFloat16ProductSource([]() -> BFloat16Product { return &PlainBlocks; });
  const TileCode<float>& code = TileCodeFor<float>(CpuIsa::kAvx512, Dtype::kBFloat16);
  std::exit(&code == &Avx512BFloat16TileCode() ? 0 : 1);
}

// The limit is read and the loops are chosen once in a process, so this test executes itself for each limit.
TEST(TileTest, TheLimitOfTheEnvironmentExcludesProductsWithAmx) {
  if (!__builtin_cpu_supports("avx512bf16"))
    GTEST_SKIP() << "this processor does not multiply bfloat16 itself";
  const char* const set = std::getenv(kCpuIsaVariable);
  const std::string before = set == nullptr ? "" : set;
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  setenv(kCpuIsaVariable, "avx512_bf16", 1);
  EXPECT_EXIT(ExitWithLoops(), testing::ExitedWithCode(0), "");
  setenv(kCpuIsaVariable, "", 1);
  EXPECT_EXIT(ExitWithLoops(), testing::ExitedWithCode(1), "");
  setenv(kCpuIsaVariable, before.c_str(), 1);
}
#endif

TEST(TileTest, Float64) {
  TileCodeTest<double> test(CpuIsa::kPortable);
  test.Products();
  test.Softmaxes();
  test.RowsAndColumns();
  test.Strips<double>(Dtype::kFloat64);
}

// Nothing outside the box is read, and only the padding is zeroed.
TEST(TileTest, ABoxIsReadAndItsPaddingZeroed) {
  const std::vector<int64_t> size = {3, 4, 5}, valid = {3, 4, 5, 2, 3, 4};
  const Extent extent = ExtentOf(size, valid);
  const int64_t channels = 2, positions = 60;
  for (const int64_t sample : {0, 1}) {
    const ValidBox box(extent, sample);
    std::vector<float> map(2 * channels * positions, kNan);
    const FeatureMap view{map.data(), channels * positions, positions, {20, 5, 1}};
    const auto at = [&](int64_t c, int64_t z, int64_t y, int64_t x) {
      return sample * channels * positions + c * positions + z * 20 + y * 5 + x;
    };
    std::vector<int64_t> order;
    for (int64_t z = 0; z < box.size(0); ++z) {
      for (int64_t y = 0; y < box.size(1); ++y) {
        for (int64_t x = 0; x < box.size(2); ++x) {
          order.push_back(at(0, z, y, x));
          for (int64_t c = 0; c < channels; ++c)
            map[at(c, z, y, x)] = static_cast<float>(order.size() * 10 + c);
        }
      }
    }
    ASSERT_EQ(box.positions(), static_cast<int64_t>(order.size()));
    const auto& code = TileCodeFor<float>(BestCpuIsa());
    const int64_t begin = 3, count = box.positions() - 4;
    std::vector<float> tile(channels * kTile, 0), matrix(count * 16, 0);
    const MapBlock block{sample, box, 0, channels, begin, count};
    LoadTile(code, view, Dtype::kFloat32, block, tile.data());
    LoadPositions(code, view, Dtype::kFloat32, block, matrix.data(), 16);
    std::vector<float> out(map.size(), kNan);
    const OutputMap out_view{out.data(), channels * positions, positions, {20, 5, 1}};
    StoreTile(code, tile.data(), out_view, Dtype::kFloat32, block);
    ZeroPadding(out_view, Dtype::kFloat32, sample, extent, box, channels);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < count; ++i) {
        const float expected = static_cast<float>((begin + i + 1) * 10 + c);
        EXPECT_EQ(tile[c * kTile + i], expected);
        EXPECT_EQ(matrix[i * 16 + c], expected);
        EXPECT_EQ(out[order[begin + i] + c * positions], expected);
      }
      int64_t zeros = 0;
      for (int64_t i = 0; i < positions; ++i)
        zeros += out[sample * channels * positions + c * positions + i] == 0;
      EXPECT_EQ(zeros, positions - box.positions());
    }
  }
}

}  // namespace
}  // namespace saccade::kernels
