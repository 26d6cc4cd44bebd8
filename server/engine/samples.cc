#include "server/engine/samples.h"

#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/decode/decoder.h"
#include "server/engine/item_sink.h"
#include "server/engine/network_input.h"

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
