#include "server/engine/warm_up_item.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <random>

#include "absl/strings/str_cat.h"
#include "server/core/bytes_elements.h"

namespace saccade::server {
namespace {

template <typename T>
void Fill(std::string* item, const std::function<T()>& next) {
  auto* const values = reinterpret_cast<T*>(item->data());
  std::generate(values, values + item->size() / sizeof(T), next);
}

void FillRandom(DataType type, std::string* item) {
  // A fixed seed, so that failures are reproducible.
  std::minstd_rand random(1);
  const auto unit = [&random] { return std::uniform_real_distribution<float>()(random); };
  const auto bit = [&random] { return static_cast<int>(random() >> 8 & 1); };
  const auto half = [&](uint16_t min, int bits) {  // [0.5, 1), with a random mantissa
    return [&random, min, bits] { return static_cast<uint16_t>(min | random() % (1U << bits)); };
  };
  if (type == DataType::kBytes) return;
  if (type == DataType::kFp32) return Fill<float>(item, unit);
  if (type == DataType::kFp64) return Fill<double>(item, unit);
  if (type == DataType::kFp16) return Fill<uint16_t>(item, half(0x3800, 10));
  if (type == DataType::kBf16) return Fill<uint16_t>(item, half(0x3F00, 7));
  switch (SizeOf(type)) {
    case 1:
      return Fill<uint8_t>(item, bit);
    case 2:
      return Fill<uint16_t>(item, bit);
    case 4:
      return Fill<uint32_t>(item, bit);
    default:
      return Fill<uint64_t>(item, bit);
  }
}

absl::StatusOr<std::string> ReadItem(const WarmupInput& input, int64_t bytes) {
  std::ifstream file(input.file_path, std::ios::binary);
  // Only the file knows how long texts are.
  const int64_t max = input.type == DataType::kBytes ? kMaxWarmUpBytes : bytes;
  std::string item(static_cast<size_t>(max), '\0');
  file.read(item.data(), static_cast<std::streamsize>(max));
  item.resize(static_cast<size_t>(file.gcount()));
  const bool whole = file.eof() || file.peek() == std::ifstream::traits_type::eof();
  if (input.type == DataType::kBytes && whole) {
    const auto texts = SplitBytes(BytePieces(item), *ElementCount(input.dims));
    if (texts.ok()) return item;
    return absl::InvalidArgumentError(absl::StrCat(input.file_path, ": ", texts.status().message()));
  }
  if (whole && static_cast<int64_t>(item.size()) == bytes) return item;
  return absl::InvalidArgumentError(absl::StrCat(input.file_path, ": expected exactly the ", bytes,
                                                 " bytes of one item, encoded as in a request"));
}

}  // namespace

absl::StatusOr<std::string> MakeWarmUpItem(const WarmupInput& input, int64_t bytes) {
  if (input.data == WarmupInput::Data::kFile) return ReadItem(input, bytes);
  std::string item(static_cast<size_t>(bytes), '\0');
  if (input.data == WarmupInput::Data::kRandom) FillRandom(input.type, &item);
  return item;
}

}  // namespace saccade::server
