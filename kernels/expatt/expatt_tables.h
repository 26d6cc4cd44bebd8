// The tables that the CPU code needs of a map over h x w positions, and the cache that keeps them. None is as
// large as the map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/expatt/expatt_problem.h"

namespace saccade::kernels {

// Algorithms that apply G.
enum class ExpattMethod {
  // G = Gy (x) Gx with smooth factors, each approximated as L L^T where L has about 7 columns: four products
  // with short sums.
  kFactored,
  // G = Gy (x) Gx: two products.
  kProducts,
  // G = Gy (x) Gx, where entries at distance d are decay^d: one pass down and one up each line.
  kRecursion,
  // G is not separable, but depends only on the distance between rows: a discrete Fourier transform over 2 h
  // - 1 rows, computed as products with cosines and sines, leaves one w x w Toeplitz matrix per frequency.
  // Exact for every G.
  kFrequencies
};

// A matrix in the form that tile.h reads: padded rows, in the accumulation type. `row` is the distance
// between rows.
template <typename A>
struct ExpattMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t row = 0;
  std::vector<A> data;
};

// The tables of one kind, extent and sigma.
template <typename A>
struct ExpattTables {
  ExpattMethod method = ExpattMethod::kProducts;
  ExpattMatrix<A> inverse;  // [h, w]: 1 / the sum of that position's row of G + 1

  // kProducts: Gy and Gx. kFactored: the L of each.
  ExpattMatrix<A> y, x;
  ExpattMatrix<A> x_transposed;  // kFactored
  // kRecursion: 1 - decay from one row or column to the next; stored instead of the decay for precision,
  // because it is small.
  A y_loss = 0;
  A x_loss = 0;
  // kFrequencies: by frequency, over the upper half of the rows; only the cosines include the middle row.
  ExpattMatrix<A> cosines;   // [h, (h + 1) / 2]
  ExpattMatrix<A> sines;     // [h - 1, h / 2], from frequency 1 on
  ExpattMatrix<A> toeplitz;  // [h, 2 w - 1]: transformed G; entry w - 1 + d is for columns d apart

  size_t bytes() const;
};

// Returns the tables from a process-wide cache, building them if necessary. If all tables of one type exceed
// kExpattTablesBytes, the least recently used are evicted (they stay alive while a caller holds them); larger
// tables are not cached. Thread-safe; concurrent calls for the same new tables may each build them. Not for
// kConstant, which needs no tables. REQUIRES: height, width >= 1; sigma as CheckSigma() demands.
template <typename A>
std::shared_ptr<const ExpattTables<A>> ExpattTablesFor(ExpattKind kind, int64_t height, int64_t width,
                                                       double sigma);

inline constexpr size_t kExpattTablesBytes = size_t{32} << 20;

// Returns the bytes that the cache of A's tables currently holds.
template <typename A>
size_t ExpattTablesBytesHeld();

}  // namespace saccade::kernels
