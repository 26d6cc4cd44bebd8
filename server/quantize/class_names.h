// Finds the class that a label names.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

class ClassNames {
 public:
  // `names` are the model's labels: empty, or one for each of `classes`.
  ClassNames(const std::vector<std::string>& names, int64_t classes);

  int64_t classes() const { return classes_; }

  // Returns the class of a label: a name of the model, or else the number of a class, from 0.
  // INVALID_ARGUMENT says what was expected, also if two classes have the name.
  absl::StatusOr<int64_t> Find(absl::string_view label) const;

 private:
  const int64_t classes_;
  // -1 for a name of several classes.
  std::map<std::string, int64_t> by_name_;
};

}  // namespace saccade::server
