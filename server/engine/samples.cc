#include "server/engine/samples.h"

#include <array>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/decode/decoder.h"
#include "server/engine/item_sink.h"
#include "server/engine/network_input.h"
#include "server/pictures/picture_header.h"

namespace saccade::server {
namespace {

// Larger files are no samples; reading one would delay the model's start.
constexpr std::streamoff kMaxFileBytes = std::streamoff{64} << 20;

// Accepts every item and keeps it. Nothing is charged, as no other request shares the daemon's bounds yet.
class SampleSink final : public ItemSink {
 public:
  explicit SampleSink(Request request) : request_(std::move(request)) {}

  const Request& request() const override { return request_; }
  BatchTask::Traits traits() const override { return {.size = 1, .deadline = absl::InfiniteFuture()}; }
  absl::Status AddDecodedBytes(int64_t /*bytes*/) override { return absl::OkStatus(); }
  absl::Status Consider(absl::Span<const int64_t> /*buckets*/) const override { return absl::OkStatus(); }
  int64_t max_items() const override { return std::numeric_limits<int64_t>::max(); }
  int64_t item_count() const override { return 0; }
  void AddItem(Item item) override { item_ = std::move(item); }
  void AddSent(const SentItem& /*sent*/) override {}

  Item TakeItem() { return std::move(item_); }

 private:
  const Request request_;
  Item item_;
};

absl::StatusOr<std::shared_ptr<const std::string>> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff bytes = file.tellg();
  if (!file || bytes < 0) return absl::InvalidArgumentError(absl::StrCat(path, ": cannot be read"));
  if (bytes > kMaxFileBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has ", bytes, " bytes; a sample has at most ", kMaxFileBytes));
  }
  file.seekg(0);
  auto text = std::make_shared<const std::string>(std::istreambuf_iterator<char>(file),
                                                  std::istreambuf_iterator<char>());
  return text;
}

}  // namespace

bool IsPictureFile(const std::string& path) {
  std::array<char, kPictureStartBytes> start = {};
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), start.size());
  return IsPicture({start.data(), static_cast<size_t>(file.gcount())});
}

absl::StatusOr<SampleItems> DivideIntoItems(absl::Span<const std::string> files,
                                            const models::ImageInput& input) {
  SampleItems divided;
  std::vector<std::string> item;
  for (const std::string& path : files) {
    if (input.views > 1 && !IsPictureFile(path)) {
      divided.no_pictures.push_back(path);
      continue;
    }
    item.push_back(path);
    if (std::ssize(item) < input.views) continue;
    divided.items.push_back(std::move(item));
    item.clear();
  }
  if (item.empty()) return divided;
  const size_t others = divided.no_pictures.size();
  return absl::InvalidArgumentError(absl::StrCat(
      "has an odd number of pictures, ", 2 * divided.items.size() + 1,
      ", so a left picture is without a right one; expected pairs, of which left and right alternate by name",
      others > 0 ? absl::StrCat("; ", others, " other files are no pictures, the first is ",
                                divided.no_pictures.front())
                 : ""));
}

absl::StatusOr<Item> ReadSample(absl::Span<const std::string> files, const models::ImageInput& input,
                                Clock* clock) {
  Request request;
  std::vector<Picture> pictures;
  for (const std::string& path : files) {
    auto file = ReadFile(path);
    if (!file.ok()) return file.status();
    pictures.emplace_back(EncodedPicture{{.owner = *file, .bytes = **file}});
  }
  request.views = static_cast<int>(files.size());
  request.input = std::move(pictures);
  request.input_name = files.front();
  request.arrival = clock->Now();
  request.deadline = absl::InfiniteFuture();
  SampleSink sink(std::move(request));
  absl::Status made = CheckInput(sink.request(), "", input);
  if (made.ok()) made = MakeItems(sink, input, ThreadDecoder(DecodeLimits()), clock);
  if (!made.ok()) return absl::InvalidArgumentError(made.message());
  return sink.TakeItem();
}

}  // namespace saccade::server
