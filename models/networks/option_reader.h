// Reads an architecture's options strictly.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/options.h"

namespace saccade::models {

// "3,4,6,3".
std::string ListText(std::span<const int64_t> numbers);
// "0.125", "1e-05".
std::string NumberText(double number);

// Throws the LoadError that says what the option is and what it may be.
[[noreturn]] void RefuseOption(const std::string& architecture, const std::string& name,
                               const std::string& value, const std::string& legal);

// Of an attention module: throws LoadError unless its heads share its channels evenly.
void CheckHeads(const std::string& architecture, int64_t heads, int64_t key_channels, int64_t value_channels);

// Each function takes one option, or its default, and throws LoadError that names the legal values. After the
// last one, RefuseOthers throws for a name that nobody asked for.
class OptionReader {
 public:
  // `options` must outlive the reader.
  OptionReader(std::string architecture, const Options& options)
      : architecture_(std::move(architecture)), options_(options) {}

  std::string Choice(const std::string& name, const std::string& otherwise,
                     const std::vector<std::string>& legal);
  int64_t Integer(const std::string& name, int64_t otherwise, int64_t least, int64_t most);
  double Number(const std::string& name, double otherwise, double least, double most);
  // Whole numbers with commas, `count` of them.
  struct Range {
    int64_t least, most;
  };
  std::vector<int64_t> Integers(const std::string& name, const std::vector<int64_t>& otherwise, Range values,
                                Range count);
  // The option blocks: of each of four stages, 1 to `most`.
  std::array<int64_t, 4> Blocks(const std::array<int64_t, 4>& otherwise, int64_t most = 64);
  // Each at most once, with commas, in the order of `legal`; or "none".
  std::vector<std::string> Several(const std::string& name, const std::string& otherwise,
                                   const std::vector<std::string>& legal);
  // Any text; the caller parses it. `legal` says what it may be.
  std::string Text(const std::string& name, const std::string& otherwise, const std::string& legal);
  void RefuseOthers() const;

 private:
  // The option's value, or nullptr; either way its name is legal from now on.
  const std::string* Find(const std::string& name, const std::string& legal);
  [[noreturn]] void Refuse(const std::string& name, const std::string& value,
                           const std::string& legal) const {
    RefuseOption(architecture_, name, value, legal);
  }

  std::string architecture_;
  const Options& options_;
  std::vector<std::string> names_;
  std::string legal_;
};

}  // namespace saccade::models
