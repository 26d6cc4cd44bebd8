// Works on the values of a map while the call needs it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "server/pictures/still_wanted.h"

namespace saccade::server {

// Values of a map between two questions whether it is still wanted. To write them as PNG takes about a
// millisecond.
inline constexpr int64_t kValuesBetweenQuestions = int64_t{1} << 16;

// Calls work(row) for the rows from 0 to `rows` - 1. Asks `wanted` before the first of them, and again each
// time that at most kValuesBetweenQuestions values (but at least one row) have been worked on. Returns the
// first error of `wanted`, and calls work() no more after it.
template <typename Work>
absl::Status ForWantedRows(int64_t rows, int64_t values_of_row, const StillWanted& wanted, Work work) {
  const int64_t rows_at_once =
      std::max<int64_t>(1, kValuesBetweenQuestions / std::max<int64_t>(1, values_of_row));
  for (int64_t row = 0; row < rows; ++row) {
    if (wanted && row % rows_at_once == 0) {
      if (absl::Status goes_on = wanted(); !goes_on.ok()) return goes_on;
    }
    work(row);
  }
  return absl::OkStatus();
}

// The same for `values` values whose rows do not matter: calls work(begin, count) for pieces of at most
// kValuesBetweenQuestions of them, in their order.
template <typename Work>
absl::Status ForWantedPieces(int64_t values, const StillWanted& wanted, Work work) {
  const int64_t pieces = (values + kValuesBetweenQuestions - 1) / kValuesBetweenQuestions;
  return ForWantedRows(pieces, kValuesBetweenQuestions, wanted, [&](int64_t piece) {
    const int64_t begin = piece * kValuesBetweenQuestions;
    work(begin, std::min(kValuesBetweenQuestions, values - begin));
  });
}

}  // namespace saccade::server
