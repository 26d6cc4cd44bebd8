// Parses an architecture's options; unknown names and illegal values are errors.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/api/options.h"

namespace saccade::models {

// Returns "3,4,6,3" for {3, 4, 6, 3}.
std::string ListText(std::span<const int64_t> numbers);
// Returns "res3,res4" for {"res3", "res4"}, and "none" if there are no names, as OptionReader::Several reads.
std::string NamesText(const std::vector<std::string>& names);
// Returns "true" or "false".
std::string FlagText(bool flag);
// Returns text such as "0.125" or "1e-05".
std::string NumberText(double number);

// Throws a LoadError that names the option, its value and the legal values.
[[noreturn]] void RefuseOption(const std::string& architecture, const std::string& name,
                               const std::string& value, const std::string& legal);

// Throws LoadError unless an attention module's heads divide its key and value channels evenly.
void CheckHeads(const std::string& architecture, int64_t heads, int64_t key_channels, int64_t value_channels);
// Throws LoadError unless the option's value is a multiple of `multiple`.
void CheckMultiple(const std::string& architecture, const std::string& option, int64_t value,
                   int64_t multiple);
// Throws LoadError unless `width` is a multiple of 0.125, which keeps all channels multiples of 8.
void CheckWidth(const std::string& architecture, double width);

// Each function reads one option and returns its value, or `otherwise` if it is not set. It throws a
// LoadError that names the legal values. After the last one, RefuseOthers() throws if there are options that
// were not read.
class OptionReader {
 public:
  // `options` must outlive the reader.
  OptionReader(std::string architecture, const Options& options)
      : architecture_(std::move(architecture)), options_(options) {}

  std::string Choice(const std::string& name, const std::string& otherwise,
                     const std::vector<std::string>& legal);
  bool Flag(const std::string& name, bool otherwise);
  int64_t Integer(const std::string& name, int64_t otherwise, int64_t min, int64_t max);
  double Number(const std::string& name, double otherwise, double min, double max);
  // Reads one number for each channel of a picture, separated by commas.
  std::array<float, 3> Channels(const std::string& name, const std::array<float, 3>& otherwise, double min,
                                double max);
  // Reads "none" as nullopt, or any finite number except 0.
  std::optional<float> NonZero(const std::string& name);
  // Reads `count` integers separated by commas.
  struct Range {
    int64_t min, max;
  };
  std::vector<int64_t> Integers(const std::string& name, const std::vector<int64_t>& otherwise, Range values,
                                Range count);
  // Reads the option `blocks`: for each of four stages, 1 to `max`.
  std::array<int64_t, 4> Blocks(const std::array<int64_t, 4>& otherwise, int64_t max = 64);
  // Reads the option `heads` of attention whose kernels take 1, 2, 4 or 8.
  int64_t PowerOfTwoHeads(int64_t otherwise);
  // Reads names separated by commas, each at most once, or "none". Returns them in the order of `legal`.
  std::vector<std::string> Several(const std::string& name, const std::string& otherwise,
                                   const std::vector<std::string>& legal);
  // Reads any text, which the caller parses. `legal` describes the legal values.
  std::string Text(const std::string& name, const std::string& otherwise, const std::string& legal);
  void RefuseOthers() const;

 private:
  // Returns the option's value, or nullptr if it is not set. Records the name as known.
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
