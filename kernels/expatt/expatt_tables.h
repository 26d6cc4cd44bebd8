// What the CPU code needs of a map over h x w positions, none of it as large as the map, and where it is
// kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/expatt/expatt_problem.h"

namespace saccade::kernels {

// How G is applied.
enum class ExpattMethod {
  // G = Gy (x) Gx, and each of them smooth, so the product of two matrices L L^T with 7 or so columns: four
  // products with short sums.
  kFactored,
  // G = Gy (x) Gx: two products.
  kProducts,
  // G = Gy (x) Gx, where entries d apart are decay^d: once down and once up each line.
  kRecursion,
  // G is not separable, but among rows it depends on their distance alone: the discrete Fourier transform
  // over 2 h - 1 rows, taken as products with cosines and sines, leaves one w x w Toeplitz matrix per
  // frequency. Exact for every G.
  kFrequencies
};

// Matrices in the form that tile.h reads: rows padded, in the type that sums are kept in.
template <typename A>
struct ExpattMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t row = 0;
  std::vector<A> data;
};

template <typename A>
struct ExpattTables {
  ExpattMethod method = ExpattMethod::kProducts;
  ExpattMatrix<A> inverse;  // [h, w]: one over the sum of that position's row of G + 1

  // kProducts: Gy and Gx. kFactored: the L of each.
  ExpattMatrix<A> y, x;
  ExpattMatrix<A> x_transposed;  // kFactored
  // kRecursion: one less the decay from a row, or column, to the next; small, and kept so to be precise.
  A y_loss = 0;
  A x_loss = 0;
  // kFrequencies: by frequency, over the upper half of the rows, the middle one included in the cosines
  // alone.
  ExpattMatrix<A> cosines;   // [h, (h + 1) / 2]
  ExpattMatrix<A> sines;     // [h - 1, h / 2], from frequency 1 on
  ExpattMatrix<A> toeplitz;  // [h, 2 w - 1]: of G transformed; the entry for columns d apart is w - 1 + d

  size_t bytes() const;
};

// From a cache of the process. Once all tables of one type hold more than kExpattTablesBytes, those least
// recently asked for are dropped (and live on as long as somebody holds them); tables that alone are larger
// are not kept. Any thread may ask; threads that ask for the same new tables at once may each build them. Not
// for kConstant, which needs none. REQUIRES: height, width >= 1; sigma finite and positive if the kind has
// one.
template <typename A>
std::shared_ptr<const ExpattTables<A>> ExpattTablesFor(ExpattKind kind, int64_t height, int64_t width,
                                                       double sigma);

inline constexpr size_t kExpattTablesBytes = size_t{32} << 20;

// What the cache of A's tables holds now.
template <typename A>
size_t ExpattTablesBytesHeld();

}  // namespace saccade::kernels
