#include "kernels/expatt/expatt_tables.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numbers>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels/common/arena.h"
#include "kernels/tile/tile.h"

namespace saccade::kernels {
namespace {

// A matrix of doubles, used while tables are built.
struct Matrix {
  Matrix(int64_t rows_, int64_t columns_) : rows(rows_), columns(columns_), data(rows_ * columns_) {}
  double& operator()(int64_t i, int64_t j) { return data[i * columns + j]; }
  double operator()(int64_t i, int64_t j) const { return data[i * columns + j]; }
  int64_t rows, columns;
  std::vector<double> data;
};

template <typename A>
ExpattMatrix<A> Padded(const Matrix& from) {
  ExpattMatrix<A> to{from.rows, from.columns, RoundUp(from.columns, kRowPadding), {}};
  // Extra padding at the end, because products with a negative row stride also read after the last row.
  to.data.resize(from.rows * to.row + kRowPadding);
  for (int64_t i = 0; i < from.rows; ++i) {
    for (int64_t j = 0; j < from.columns; ++j) to.data[i * to.row + j] = static_cast<A>(from(i, j));
  }
  return to;
}

// Returns G of two positions that are dy rows and dx columns apart.
double Weight(ExpattKind kind, double dy, double dx, double height, double width, double sigma) {
  const double y = dy / height;
  const double x = dx / width;
  const double of_diagonal = std::sqrt((dy * dy + dx * dx) / (height * height + width * width));
  switch (kind) {
    case ExpattKind::kConstant:
      return 1;
    case ExpattKind::kLinear:
      return 1 - of_diagonal;
    case ExpattKind::kCosine:
      return 0.5 * (1 + std::cos(std::numbers::pi * of_diagonal));
    case ExpattKind::kGaussian:
      return std::exp(-(y * y + x * x) / (2 * sigma * sigma));
    case ExpattKind::kExponentialEuclidean:
      return std::exp(-std::sqrt(y * y + x * x) / sigma);
    case ExpattKind::kExponentialManhattan:
      return std::exp(-(y + x) / sigma);
  }
  return 0;
}

// Returns G + 1 by distance, [h, w].
Matrix ByDistance(ExpattKind kind, int64_t height, int64_t width, double sigma) {
  Matrix table(height, width);
  for (int64_t dy = 0; dy < height; ++dy) {
    for (int64_t dx = 0; dx < width; ++dx) {
      table(dy, dx) = 1 + Weight(kind, static_cast<double>(dy), static_cast<double>(dx),
                                 static_cast<double>(height), static_cast<double>(width), sigma);
    }
  }
  return table;
}

// Replaces values[i] by the sum over all j of values[|i - j|], for a line of values `stride` apart.
void SumOverLine(double* values, int64_t size, int64_t stride) {
  const double own = values[0];
  std::vector<double> upto(size);
  double sum = 0;
  for (int64_t d = 0; d < size; ++d) upto[d] = sum += values[d * stride];
  for (int64_t i = 0; i < size; ++i) values[i * stride] = upto[i] + upto[size - 1 - i] - own;
}

Matrix InverseOfSums(Matrix table) {
  for (int64_t dy = 0; dy < table.rows; ++dy) SumOverLine(&table(dy, 0), table.columns, 1);
  for (int64_t x = 0; x < table.columns; ++x) SumOverLine(&table(0, x), table.rows, table.columns);
  for (double& sum : table.data) sum = 1 / sum;
  return table;
}

// Returns one factor of a separable G by distance.
std::vector<double> LineWeights(ExpattKind kind, int64_t size, double sigma) {
  std::vector<double> weights(size);
  for (int64_t d = 0; d < size; ++d) {
    weights[d] = Weight(kind, static_cast<double>(d), 0, static_cast<double>(size), 1, sigma);
  }
  return weights;
}

Matrix Toeplitz(const std::vector<double>& weights) {
  const auto size = static_cast<int64_t>(weights.size());
  Matrix matrix(size, size);
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = 0; j < size; ++j) matrix(i, j) = weights[std::abs(i - j)];
  }
  return matrix;
}

// Returns L with G = L L^T up to `tolerance` in each entry, by Cholesky's decomposition with the largest
// remaining diagonal entry as pivot. The remainder is positive definite, so its largest diagonal entry bounds
// all others.
Matrix Factor(const std::vector<double>& weights, double tolerance) {
  const auto size = static_cast<int64_t>(weights.size());
  std::vector<double> remaining(size, weights[0]);
  std::vector<std::vector<double>> columns;
  while (static_cast<int64_t>(columns.size()) < size) {
    const int64_t pivot = std::max_element(remaining.begin(), remaining.end()) - remaining.begin();
    if (remaining[pivot] <= tolerance) break;
    std::vector<double> column(size);
    const double root = std::sqrt(remaining[pivot]);
    for (int64_t i = 0; i < size; ++i) {
      double entry = weights[std::abs(i - pivot)];
      for (const auto& earlier : columns) entry -= earlier[i] * earlier[pivot];
      column[i] = entry / root;
    }
    for (int64_t i = 0; i < size; ++i) remaining[i] -= column[i] * column[i];
    columns.push_back(std::move(column));
  }
  Matrix factor(size, static_cast<int64_t>(columns.size()));
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t c = 0; c < factor.columns; ++c) factor(i, c) = columns[c][i];
  }
  return factor;
}

Matrix Transposed(const Matrix& from) {
  Matrix to(from.columns, from.rows);
  for (int64_t i = 0; i < from.rows; ++i) {
    for (int64_t j = 0; j < from.columns; ++j) to(j, i) = from(i, j);
  }
  return to;
}

template <typename A>
void MakeGaussian(int64_t height, int64_t width, double sigma, ExpattTables<A>* tables) {
  const std::vector<double> y = LineWeights(ExpattKind::kGaussian, height, sigma);
  const std::vector<double> x = LineWeights(ExpattKind::kGaussian, width, sigma);
  if constexpr (std::is_same_v<A, float>) {
    // Far below the error of rounding the entries to float.
    constexpr double kTolerance = 0x1p-27;
    const Matrix y_factor = Factor(y, kTolerance);
    const Matrix x_factor = Factor(x, kTolerance);
    const int64_t positions = height * width;
    const int64_t factored =
        2 * y_factor.columns * (positions + width * RoundUp(x_factor.columns, kRowPadding));
    if (factored < positions * (height + width)) {
      tables->method = ExpattMethod::kFactored;
      tables->y = Padded<A>(y_factor);
      tables->x = Padded<A>(x_factor);
      tables->x_transposed = Padded<A>(Transposed(x_factor));
      return;
    }
  }
  tables->method = ExpattMethod::kProducts;
  tables->y = Padded<A>(Toeplitz(y));
  tables->x = Padded<A>(Toeplitz(x));
}

template <typename A>
void MakeManhattan(int64_t height, int64_t width, double sigma, ExpattTables<A>* tables) {
  // On shorter lines the recursion's steps are too short to pay off.
  constexpr int64_t kMaxShortLine = 20;
  if (std::max(height, width) > kMaxShortLine) {
    tables->method = ExpattMethod::kRecursion;
    tables->y_loss = static_cast<A>(-std::expm1(-1 / (static_cast<double>(height) * sigma)));
    tables->x_loss = static_cast<A>(-std::expm1(-1 / (static_cast<double>(width) * sigma)));
    return;
  }
  tables->method = ExpattMethod::kProducts;
  tables->y = Padded<A>(Toeplitz(LineWeights(ExpattKind::kExponentialManhattan, height, sigma)));
  tables->x = Padded<A>(Toeplitz(LineWeights(ExpattKind::kExponentialManhattan, width, sigma)));
}

// Rows are numbered from the middle, so that cosines are even and sines are odd.
template <typename A>
void MakeFrequencies(const Matrix& table, ExpattTables<A>* tables) {
  const int64_t height = table.rows;
  const int64_t width = table.columns;
  const double step = 2 * std::numbers::pi / static_cast<double>(2 * height - 1);
  const double middle = static_cast<double>(height - 1) / 2;
  Matrix cosines(height, (height + 1) / 2);
  Matrix sines(height - 1, height / 2);
  Matrix toeplitz(height, 2 * width - 1);
  std::vector<double> wave(height);
  for (int64_t k = 0; k < height; ++k) {
    const double turn = step * static_cast<double>(k);
    for (int64_t y = 0; y < cosines.columns; ++y) {
      cosines(k, y) = std::cos(turn * (static_cast<double>(y) - middle));
    }
    for (int64_t y = 0; y < sines.columns && k > 0; ++y) {
      sines(k - 1, y) = std::sin(turn * (static_cast<double>(y) - middle));
    }
    for (int64_t d = 0; d < height; ++d) wave[d] = (d == 0 ? 1 : 2) * std::cos(turn * static_cast<double>(d));
    const double scale = (k == 0 ? 1.0 : 2.0) / static_cast<double>(2 * height - 1);
    for (int64_t dx = 0; dx < width; ++dx) {
      double sum = 0;
      for (int64_t dy = 0; dy < height; ++dy) sum += wave[dy] * (table(dy, dx) - 1);
      toeplitz(k, width - 1 - dx) = toeplitz(k, width - 1 + dx) = sum * scale;
    }
  }
  tables->method = ExpattMethod::kFrequencies;
  tables->cosines = Padded<A>(cosines);
  tables->sines = Padded<A>(sines);
  tables->toeplitz = Padded<A>(toeplitz);
}

template <typename A>
std::shared_ptr<const ExpattTables<A>> Make(ExpattKind kind, int64_t height, int64_t width, double sigma) {
  auto tables = std::make_shared<ExpattTables<A>>();
  const Matrix table = ByDistance(kind, height, width, sigma);
  tables->inverse = Padded<A>(InverseOfSums(table));
  if (kind == ExpattKind::kGaussian) {
    MakeGaussian(height, width, sigma, tables.get());
  } else if (kind == ExpattKind::kExponentialManhattan) {
    MakeManhattan(height, width, sigma, tables.get());
  } else {
    MakeFrequencies(table, tables.get());
  }
  return tables;
}

// A cache of tables with a bounded size that evicts the least recently used. Thread-safe.
template <typename A>
class Cache {
 public:
  using Key = std::tuple<ExpattKind, int64_t, int64_t, double>;
  using Tables = std::shared_ptr<const ExpattTables<A>>;

  Tables Find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) return nullptr;
    found->second.used = ++clock_;
    return found->second.tables;
  }

  void Insert(const Key& key, const Tables& tables) {
    const size_t bytes = tables->bytes();
    if (bytes > kExpattTablesBytes) return;
    const std::lock_guard lock(mutex_);
    if (!entries_.emplace(key, Entry{tables, ++clock_}).second) return;
    bytes_ += bytes;
    while (bytes_ > kExpattTablesBytes) {
      const auto oldest =
          std::min_element(entries_.begin(), entries_.end(),
                           [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
      bytes_ -= oldest->second.tables->bytes();
      entries_.erase(oldest);
    }
  }

  size_t bytes() {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  struct Entry {
    Tables tables;
    uint64_t used;
  };
  // Guards all members below.
  std::mutex mutex_;
  std::map<Key, Entry> entries_;
  uint64_t clock_ = 0;
  size_t bytes_ = 0;
};

// Never destroyed, because threads may outlive static objects.
template <typename A>
Cache<A>& TheCache() {
  static auto* const cache = new Cache<A>();
  return *cache;
}

}  // namespace

template <typename A>
size_t ExpattTables<A>::bytes() const {
  size_t entries = 0;
  for (const auto* matrix : {&inverse, &y, &x, &x_transposed, &cosines, &sines, &toeplitz}) {
    entries += matrix->data.capacity();
  }
  return sizeof(*this) + entries * sizeof(A);
}

template <typename A>
std::shared_ptr<const ExpattTables<A>> ExpattTablesFor(ExpattKind kind, int64_t height, int64_t width,
                                                       double sigma) {
  // Kinds without sigma share their tables for every value of it.
  const bool has_sigma = IsSeparable(kind) || kind == ExpattKind::kExponentialEuclidean;
  const typename Cache<A>::Key key{kind, height, width, has_sigma ? sigma : 1};
  auto tables = TheCache<A>().Find(key);
  if (tables == nullptr) {
    tables = Make<A>(kind, height, width, has_sigma ? sigma : 1);
    TheCache<A>().Insert(key, tables);
  }
  return tables;
}

template <typename A>
size_t ExpattTablesBytesHeld() {
  return TheCache<A>().bytes();
}

template struct ExpattTables<float>;
template struct ExpattTables<double>;
template std::shared_ptr<const ExpattTables<float>> ExpattTablesFor(ExpattKind, int64_t, int64_t, double);
template std::shared_ptr<const ExpattTables<double>> ExpattTablesFor(ExpattKind, int64_t, int64_t, double);
template size_t ExpattTablesBytesHeld<float>();
template size_t ExpattTablesBytesHeld<double>();

}  // namespace saccade::kernels
