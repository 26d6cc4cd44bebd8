#include "models/networks/pair_tensors.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace saccade::models {
namespace {

// Parts of a common ending that are looked at, beginning with the last one.
constexpr size_t kMaxEndingParts = 6;

// Indices of tensors, in the order in which they are compared.
using Order = std::vector<size_t>;

// The last `parts` parts of a name; all of it if it has fewer.
std::string_view EndingOf(std::string_view name, size_t parts) {
  size_t begin = name.size();
  for (; parts > 0; --parts) {
    const size_t dot = begin == 0 ? std::string_view::npos : name.rfind('.', begin - 1);
    if (dot == std::string_view::npos) return name;
    begin = dot;
  }
  return name.substr(begin + 1);
}

// Whether `a` comes before `b`, where numbers are compared by value: "layer.2" before "layer.10".
bool NaturallyBefore(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const auto digits = [&](std::string_view text, size_t at) {
    size_t end = at;
    while (end < text.size() && is_digit(text[end])) ++end;
    return text.substr(at, end - at);
  };
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::string_view left = digits(a, i), right = digits(b, j);
      if (left.size() != right.size()) return left.size() < right.size();
      if (left != right) return left < right;
      i += left.size();
      j += right.size();
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

// Numbers the kinds of tensors: two that are one and the same have equal shapes and last parts of their
// names.
class Kinds {
 public:
  template <typename Tensor>
  std::vector<size_t> NumbersOf(const std::vector<Tensor>& tensors) {
    std::vector<size_t> numbers;
    numbers.reserve(tensors.size());
    for (const Tensor& tensor : tensors) {
      const std::pair kind(&tensor.shape, EndingOf(tensor.name, 1));
      numbers.push_back(numbers_.try_emplace(kind, numbers_.size()).first->second);
    }
    return numbers;
  }
  size_t size() const { return numbers_.size(); }

 private:
  using Kind = std::pair<const std::vector<int64_t>*, std::string_view>;
  struct Before {
    bool operator()(const Kind& a, const Kind& b) const {
      return *a.first != *b.first ? *a.first < *b.first : a.second < b.second;
    }
  };
  std::map<Kind, size_t, Before> numbers_;
};

// A kind, and an ending of a name.
using Key = std::pair<size_t, std::string_view>;
struct KeyHash {
  size_t operator()(const Key& key) const { return std::hash<std::string_view>()(key.second) + key.first; }
};

template <typename Tensor>
Order Natural(const std::vector<Tensor>& tensors) {
  Order order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return NaturallyBefore(tensors[a].name, tensors[b].name); });
  return order;
}

// Holds what is unpaired on both sides, and the pairs.
class Pairing {
 public:
  Pairing(const std::vector<TensorSpec>& missing, const std::vector<FileTensor>& surplus)
      : missing_(missing), surplus_(surplus), partners_(missing.size()), taken_(surplus.size()) {
    Kinds kinds;
    kinds_of_missing_ = kinds.NumbersOf(missing);
    kinds_of_surplus_ = kinds.NumbersOf(surplus);
    std::vector<bool> is_missing(kinds.size()), is_surplus(kinds.size());
    for (const size_t kind : kinds_of_missing_) is_missing[kind] = true;
    for (const size_t kind : kinds_of_surplus_) is_surplus[kind] = true;
    // Those of a kind that the other side does not have are never paired.
    for (size_t i = 0; i < missing.size(); ++i) {
      if (is_surplus[kinds_of_missing_[i]]) of_missing_.push_back(i);
    }
    for (size_t i = 0; i < surplus.size(); ++i) {
      if (is_missing[kinds_of_surplus_[i]]) of_surplus_.push_back(i);
    }
  }

  // Pairs all of both sides, position by position. Returns false, and pairs nothing, if some do not fit.
  bool AllInOrder(const Order& missing, const Order& surplus) {
    const auto alike = [&](size_t a, size_t b) { return kinds_of_missing_[a] == kinds_of_surplus_[b]; };
    if (!std::equal(missing.begin(), missing.end(), surplus.begin(), surplus.end(), alike)) return false;
    for (size_t i = 0; i < missing.size(); ++i) Pair(missing[i], surplus[i]);
    return true;
  }

  // Pairs those whose last `parts` parts are the same, if no other tensor of the kind has them.
  void ByEnding(size_t parts) {
    std::unordered_map<Key, std::pair<Order, Order>, KeyHash> groups;
    ForUnpaired(
        [&](size_t i) {
          groups[{kinds_of_missing_[i], EndingOf(missing_[i].name, parts)}].first.push_back(i);
        },
        [&](size_t i) {
          groups[{kinds_of_surplus_[i], EndingOf(surplus_[i].name, parts)}].second.push_back(i);
        });
    for (const auto& [key, group] : groups) {
      if (group.first.size() == 1 && group.second.size() == 1) Pair(group.first[0], group.second[0]);
    }
  }

  // Pairs those of a kind in their order, if there are as many on both sides.
  void ByCount() {
    std::unordered_map<size_t, std::pair<Order, Order>> groups;
    ForUnpaired([&](size_t i) { groups[kinds_of_missing_[i]].first.push_back(i); },
                [&](size_t i) { groups[kinds_of_surplus_[i]].second.push_back(i); });
    for (const auto& [key, group] : groups) {
      if (group.first.size() != group.second.size()) continue;
      for (size_t i = 0; i < group.first.size(); ++i) Pair(group.first[i], group.second[i]);
    }
  }

  void Fill(WeightsFit& fit) const {
    for (size_t i = 0; i < missing_.size(); ++i) {
      if (partners_[i] != nullptr) {
        const std::string& found = partners_[i]->name;
        const std::string_view ending = EndingOf(found, 2);
        const bool similar = ending != EndingOf(found, 1) && ending == EndingOf(missing_[i].name, 2);
        fit.renamed.push_back({missing_[i].name, found, missing_[i].shape, similar});
      } else {
        fit.missing.push_back(missing_[i]);
      }
    }
    for (size_t i = 0; i < surplus_.size(); ++i) {
      if (!taken_[i]) fit.surplus.push_back(surplus_[i]);
    }
  }

 private:
  void Pair(size_t missing, size_t surplus) {
    partners_[missing] = &surplus_[surplus];
    taken_[surplus] = true;
  }

  template <typename ForMissing, typename ForSurplus>
  void ForUnpaired(const ForMissing& for_missing, const ForSurplus& for_surplus) const {
    for (const size_t i : of_missing_) {
      if (partners_[i] == nullptr) for_missing(i);
    }
    for (const size_t i : of_surplus_) {
      if (!taken_[i]) for_surplus(i);
    }
  }

  const std::vector<TensorSpec>& missing_;
  const std::vector<FileTensor>& surplus_;
  std::vector<size_t> kinds_of_missing_;
  std::vector<size_t> kinds_of_surplus_;
  // Those that may be paired.
  Order of_missing_;
  Order of_surplus_;
  std::vector<const FileTensor*> partners_;
  std::vector<bool> taken_;
};

}  // namespace

void PairTensors(const std::vector<TensorSpec>& missing, const std::vector<FileTensor>& surplus,
                 WeightsFit& fit) {
  Pairing pairing(missing, surplus);
  if (missing.size() == surplus.size()) {
    Order as_listed(missing.size());
    std::iota(as_listed.begin(), as_listed.end(), size_t{0});
    // Files of safetensors are sorted by name, state_dicts are in the order of the network.
    const Order file = Natural(surplus);
    if (pairing.AllInOrder(as_listed, as_listed) || pairing.AllInOrder(Natural(missing), file) ||
        pairing.AllInOrder(as_listed, file))
      return pairing.Fill(fit);
  }
  for (size_t parts = kMaxEndingParts; parts > 0; --parts) pairing.ByEnding(parts);
  pairing.ByCount();
  pairing.Fill(fit);
}

}  // namespace saccade::models
