// Applies the map to some channels of one sample, which is stored as rows of the image.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/common/arena.h"
#include "kernels/expatt/expatt_recursion.h"
#include "kernels/expatt/expatt_tables.h"
#include "kernels/tile/tile.h"

namespace saccade::kernels {

// `channels` channels of h x w positions, stored by image row with all channels of a row together: value (c,
// y, x) is data[y * row + c * width_row + x]. So one product with a matrix over rows handles all channels.
template <typename A>
class ExpattLines {
 public:
  // Takes memory for images of at most `height` x `width`.
  ExpattLines(CpuIsa isa, bool separable, int64_t channels, int64_t height, int64_t width, Arena* arena)
      : code_(TileCodeFor<A>(isa)), recursion_(ExpattRecursionFor<A>(isa)) {
    SetSize(channels, height, width);
    data_ = arena->Take<A>(height * row_);
    // Frequencies need twice as many rows.
    const int64_t rows = separable ? height : 2 * height;
    first_ = arena->Take<A>(std::max(rows * row_, separable ? width * turned_row_ : 0));
    second_ = arena->Take<A>(rows * row_);
    narrow_ = arena->Take<A>(separable ? height * channels * width_row_ : 0);
    scratch_ = arena->Take<A>(separable ? std::max(height, width) * kExpattRecursionColumns : 0);
    line_ = arena->Take<A>(row_);
    means_ = arena->Take<A>(RoundUp(channels, kRowPadding));
  }

  void SetSize(int64_t channels, int64_t height, int64_t width) {
    channels_ = channels;
    height_ = height;
    width_ = width;
    width_row_ = RoundUp(width, kRowPadding);
    // Rows a power of two apart would share few sets of the cache.
    row_ = channels * width_row_ + kRowPadding;
    turned_row_ = channels * RoundUp(height, kRowPadding) + kRowPadding;
  }

  int64_t width_row() const { return width_row_; }
  A* RowAt(int64_t y) { return data_ + y * row_; }

  // Replaces each channel v by Norm(G + 1) v. The mean is subtracted first: rows of the map sum to one, so
  // the mean passes through unchanged, and the rest sums to zero under the ones, so only G must be applied to
  // it. The result is then small, and so is its rounding error.
  void Apply(const ExpattTables<A>& tables) {
    SubtractMeans();
    switch (tables.method) {
      case ExpattMethod::kFactored:
        ApplyFactored(tables);
        break;
      case ExpattMethod::kProducts:
        ApplyProducts(tables);
        break;
      case ExpattMethod::kRecursion:
        ApplyRecursion(tables);
        break;
      case ExpattMethod::kFrequencies:
        ApplyFrequencies(tables);
    }
    for (int64_t y = 0; y < height_; ++y) {
      code_.scale_columns(RowAt(y), channels_, width_, width_row_,
                          tables.inverse.data.data() + y * tables.inverse.row);
      ShiftRow(y, means_);
    }
  }

 private:
  int64_t columns() const { return channels_ * width_row_; }

  // to (m rows) = a from (k rows), over all channels at once; from_row and to_row are the distances between
  // rows.
  void OverRows(int64_t m, int64_t k, const MatrixView<A>& a, const A* from, int64_t from_row, A* to,
                int64_t to_row) const {
    code_.product(m, columns(), k, a, from, from_row, to, to_row, false);
  }

  static MatrixView<A> ViewOf(const ExpattMatrix<A>& matrix) { return {matrix.data.data(), matrix.row, 1}; }

  // Multiplies all rows down to the few of the factor, then all columns down to few and back, then back to
  // all rows.
  void ApplyFactored(const ExpattTables<A>& tables) {
    const ExpattMatrix<A>& y = tables.y;
    const ExpattMatrix<A>& x = tables.x;
    const MatrixView<A> y_view = ViewOf(y);
    OverRows(y.columns, height_, y_view.Transposed(), data_, row_, first_, columns());
    code_.product(y.columns * channels_, x.columns, width_, {first_, width_row_, 1}, x.data.data(), x.row,
                  narrow_, x.row, false);
    code_.product(y.columns * channels_, width_, x.columns, {narrow_, x.row, 1},
                  tables.x_transposed.data.data(), tables.x_transposed.row, second_, width_row_, false);
    OverRows(height_, y.columns, y_view, second_, columns(), data_, row_);
  }

  void ShiftRow(int64_t y, const A* shift) {
    code_.affine(RowAt(y), channels_, width_, width_row_, nullptr, shift, nullptr);
  }

  void SubtractMeans() {
    std::fill_n(line_, columns(), A{0});
    code_.add_column_sums(data_, height_, columns(), row_, line_);
    std::fill_n(means_, channels_, A{0});
    code_.add_row_sums(line_, channels_, width_, width_row_, means_);
    A* minus = line_;
    for (int64_t c = 0; c < channels_; ++c) {
      means_[c] /= static_cast<A>(height_ * width_);
      minus[c] = -means_[c];
    }
    for (int64_t y = 0; y < height_; ++y) ShiftRow(y, minus);
  }

  void ApplyProducts(const ExpattTables<A>& tables) {
    for (int64_t y = 0; y < height_; ++y) {
      code_.product(channels_, width_, width_, {RowAt(y), width_row_, 1}, tables.x.data.data(), tables.x.row,
                    first_ + y * row_, width_row_, false);
    }
    OverRows(height_, height_, ViewOf(tables.y), first_, row_, data_, row_);
  }

  void ApplyRecursion(const ExpattTables<A>& tables) {
    recursion_(data_, height_, columns(), row_, tables.y_loss, scratch_);
    const int64_t height_row = RoundUp(height_, kRowPadding);
    for (int64_t c = 0; c < channels_; ++c) {
      code_.transpose(data_ + c * width_row_, height_, width_, row_, first_ + c * height_row, turned_row_);
    }
    recursion_(first_, width_, channels_ * height_row, turned_row_, tables.x_loss, scratch_);
    for (int64_t c = 0; c < channels_; ++c) {
      code_.transpose(first_ + c * height_row, width_, height_, turned_row_, data_ + c * width_row_, row_);
    }
  }

  // Replaces rows y and h - 1 - y by their sum and their difference. Applied twice, it multiplies by two.
  void Fold() {
    const A minus = -1;
    for (int64_t y = 0; y < height_ / 2; ++y) {
      A* upper = RowAt(y);
      A* lower = RowAt(height_ - 1 - y);
      std::memcpy(line_, lower, static_cast<size_t>(columns()) * sizeof(A));
      code_.affine(lower, 1, columns(), row_, &minus, nullptr, upper);
      code_.affine(upper, 1, columns(), row_, nullptr, nullptr, line_);
    }
  }

  // Multiplies each of `count` rows, one per frequency from `first` on, by the frequency's Toeplitz matrix.
  // The matrix's rows are overlapping parts of one array, each starting one entry earlier.
  void ApplyToeplitz(const ExpattTables<A>& tables, int64_t first, int64_t count, const A* from,
                     A* to) const {
    for (int64_t k = 0; k < count; ++k) {
      const A* middle = tables.toeplitz.data.data() + (first + k) * tables.toeplitz.row + width_ - 1;
      code_.product(channels_, width_, width_, {from + k * row_, width_row_, 1}, middle, -1, to + k * row_,
                    width_row_, false);
    }
  }

  // Multiplies the sums by the cosines, and the differences, in reverse order, by the sines.
  void ApplyFrequencies(const ExpattTables<A>& tables) {
    const MatrixView<A> cosines = ViewOf(tables.cosines);
    const MatrixView<A> sines = ViewOf(tables.sines);
    A* last = RowAt(height_ - 1);
    A* odd = first_ + height_ * row_;
    A* odd_result = second_ + height_ * row_;
    Fold();
    OverRows(height_, tables.cosines.columns, cosines, data_, row_, first_, row_);
    if (height_ > 1) OverRows(height_ - 1, tables.sines.columns, sines, last, -row_, odd, row_);
    ApplyToeplitz(tables, 0, height_, first_, second_);
    ApplyToeplitz(tables, 1, height_ - 1, odd, odd_result);
    OverRows(tables.cosines.columns, height_, cosines.Transposed(), second_, row_, data_, row_);
    if (height_ > 1) {
      OverRows(tables.sines.columns, height_ - 1, sines.Transposed(), odd_result, row_, last, -row_);
    }
    Fold();
  }

  const TileCode<A>& code_;
  const ExpattRecursion<A> recursion_;
  int64_t channels_, height_, width_, width_row_, row_, turned_row_;
  A *data_, *first_, *second_, *narrow_, *scratch_, *line_, *means_;
};

}  // namespace saccade::kernels
