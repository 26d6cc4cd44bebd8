#include "server/inference/task_tensors.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "models/tasks/mask_frame.h"
#include "server/core/errors.h"
#include "server/inference/picture_inputs.h"

namespace saccade::server {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are sent as they lie in memory");

template <typename T>
void Append(const T* values, size_t count, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

template <typename T>
void Append(const std::vector<T>& values, std::string& bytes) {
  Append(values.data(), values.size(), bytes);
}

Values Made(std::vector<int64_t> shape, std::string bytes) {
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  const std::string_view view = *owner;
  return {.shape = std::move(shape), .data = BytePieces(view, std::move(owner))};
}

// Adds values without copying them.
template <typename T>
void Refer(const std::vector<T>& values, BytePieces& data) {
  data.Add({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
}

// What a picture has in an output, such as {0, "5 values"}.
struct PictureExtent {
  size_t picture;
  std::string extent;
};

// The error of two pictures whose extents differ, so that they fit in no tensor. `advice` is appended.
absl::Status ExtentsDiffer(const PictureExtent& one, const PictureExtent& other, absl::string_view output,
                           absl::string_view advice) {
  return Invalid(kImageInput,
                 absl::StrCat("picture ", one.picture, " has ", one.extent, ", picture ", other.picture,
                              " has ", other.extent, ", and output '", output,
                              "' is a single tensor; send only pictures of the same size together", advice));
}

// [n, values] of results that must have the same number of values.
template <typename Result, typename T>
absl::StatusOr<Values> Rows(const HeldResponse& response, std::vector<T> Result::* values,
                            absl::string_view output) {
  Values tensor{.data = BytePieces({}, response)};
  const auto& first = std::get<Result>(response->results.at(0)).*values;
  tensor.shape = {static_cast<int64_t>(response->results.size()), static_cast<int64_t>(first.size())};
  for (size_t i = 0; i < response->results.size(); ++i) {
    const auto& row = std::get<Result>(response->results[i]).*values;
    if (row.size() != first.size()) {
      return ExtentsDiffer({i, absl::StrCat(row.size(), " values")}, {0, absl::StrCat(first.size())}, output,
                           "");
    }
    Refer(row, tensor.data);
  }
  return tensor;
}

// The number of items of each result; in flat form, the index of each result's first item, and the total.
template <typename Result>
Values Counts(const HeldResponse& response, ItemsForm form) {
  std::string bytes;
  int64_t before = 0;
  if (form == ItemsForm::kFlat) Append(&before, 1, bytes);
  for (const models::TaskResult& result : response->results) {
    const auto count = static_cast<int64_t>(std::get<Result>(result).items.size());
    before += count;
    Append(form == ItemsForm::kFlat ? &before : &count, 1, bytes);
  }
  const auto numbers = static_cast<int64_t>(bytes.size() / sizeof(int64_t));
  return Made({numbers}, std::move(bytes));
}

// [items, extents...], written by `append`, which gets an item, the index of its result, and the bytes to
// append to.
template <typename Result, typename T, typename AppendOne>
Values PerItem(const HeldResponse& response, ItemsForm form, std::initializer_list<int64_t> extents,
               AppendOne append) {
  const size_t results = response->results.size();
  size_t max = 0;
  size_t all = 0;
  for (const models::TaskResult& result : response->results) {
    const size_t items = std::get<Result>(result).items.size();
    max = std::max(max, items);
    all += items;
  }
  const bool padded = form == ItemsForm::kPadded;
  std::vector<int64_t> shape = {static_cast<int64_t>(padded ? results : all)};
  if (padded) shape.push_back(static_cast<int64_t>(max));
  size_t item_bytes = sizeof(T);
  for (const int64_t extent : extents) {
    shape.push_back(extent);
    item_bytes *= static_cast<size_t>(extent);
  }
  std::string bytes;
  bytes.reserve((padded ? results * max : all) * item_bytes);
  for (size_t i = 0; i < results; ++i) {
    for (const auto& item : std::get<Result>(response->results[i]).items) append(item, i, bytes);
    if (padded) bytes.resize((i + 1) * max * item_bytes, '\0');
  }
  return Made(std::move(shape), std::move(bytes));
}

template <typename Result>
Values ScoresOf(const HeldResponse& response, ItemsForm form) {
  return PerItem<Result, float>(response, form, {}, [](const auto& item, size_t, std::string& bytes) {
    Append(&item.score, 1, bytes);
  });
}

template <typename Result>
Values LabelsOf(const HeldResponse& response, ItemsForm form) {
  return PerItem<Result, int64_t>(response, form, {}, [](const auto& item, size_t, std::string& bytes) {
    Append(&item.label, 1, bytes);
  });
}

// Frames per second that the network saw. Tensors are assumed to have the model's rate.
double FrameRate(const Response& response, size_t item) {
  if (item < response.sent.size()) return response.sent[item].frames_per_second;
  return response.description->input.clip.frames_per_second;
}

// [n, height, width] of maps that must have the same size. `advice` is appended to the error.
template <typename Result, typename T>
absl::StatusOr<Values> Maps(const HeldResponse& response, std::vector<T> Result::* values,
                            absl::string_view output, absl::string_view advice) {
  const auto& first = std::get<Result>(response->results.at(0));
  Values tensor{.data = BytePieces({}, response)};
  tensor.shape = {static_cast<int64_t>(response->results.size()), first.height, first.width};
  for (size_t i = 0; i < response->results.size(); ++i) {
    const auto& map = std::get<Result>(response->results[i]);
    if (map.height != first.height || map.width != first.width) {
      return ExtentsDiffer({i, absl::StrCat(map.width, " x ", map.height, " pixels")},
                           {0, absl::StrCat(first.width, " x ", first.height)}, output, advice);
    }
    Refer(map.*values, tensor.data);
  }
  return tensor;
}

}  // namespace

absl::StatusOr<Values> Logits(const HeldResponse& response) {
  return Rows(response, &models::Classification::logits, "logits");
}

Values DetectionCounts(const HeldResponse& response, ItemsForm form) {
  return Counts<models::Detections>(response, form);
}

Values Boxes(const HeldResponse& response, ItemsForm form) {
  return PerItem<models::Detections, float>(
      response, form, {4}, [](const models::Detection& item, size_t, std::string& bytes) {
        const float box[] = {item.x_min, item.y_min, item.x_max, item.y_max};
        Append(box, 4, bytes);
      });
}

Values Scores(const HeldResponse& response, ItemsForm form) {
  return ScoresOf<models::Detections>(response, form);
}

Values Labels(const HeldResponse& response, ItemsForm form) {
  return LabelsOf<models::Detections>(response, form);
}

absl::StatusOr<Values> Masks(const HeldResponse& response, ItemsForm form) {
  // The side is that of the first picture with detections: others may have any.
  const auto& results = response->results;
  const auto found = std::find_if(results.begin(), results.end(), [](const models::TaskResult& result) {
    return !std::get<models::Detections>(result).items.empty();
  });
  const size_t first = found == results.end() ? 0 : static_cast<size_t>(found - results.begin());
  const int64_t side = std::get<models::Detections>(results.at(first)).mask_side;
  const auto values = static_cast<size_t>(side * side);
  for (size_t i = first; i < results.size(); ++i) {
    for (const models::Detection& item : std::get<models::Detections>(results[i]).items) {
      // Masks with a frame are interpolated to any side.
      if (item.frame.columns > 0 || item.mask.size() == values) continue;
      return ExtentsDiffer({i, absl::StrCat("a mask of ", item.mask.size(), " values")},
                           {first, absl::StrCat("masks of ", values)}, "masks", "");
    }
  }
  return PerItem<models::Detections, float>(
      response, form, {side, side}, [side](const models::Detection& item, size_t, std::string& bytes) {
        Append(item.frame.columns > 0 ? models::MaskOverBox(item, side) : item.mask, bytes);
      });
}

Values ActionCounts(const HeldResponse& response, ItemsForm form) {
  return Counts<models::Actions>(response, form);
}

Values ActionSegments(const HeldResponse& response, ItemsForm form) {
  return PerItem<models::Actions, float>(
      response, form, {2}, [&](const models::Action& item, size_t clip, std::string& bytes) {
        const double rate = FrameRate(*response, clip);
        const float segment[] = {static_cast<float>(item.start / rate), static_cast<float>(item.end / rate)};
        Append(segment, 2, bytes);
      });
}

Values ActionScores(const HeldResponse& response, ItemsForm form) {
  return ScoresOf<models::Actions>(response, form);
}

Values ActionLabels(const HeldResponse& response, ItemsForm form) {
  return LabelsOf<models::Actions>(response, form);
}

absl::StatusOr<Values> RestoredVolumes(const HeldResponse& response) {
  const auto& first = std::get<models::Restoration>(response->results.at(0));
  Values tensor{.data = BytePieces({}, response)};
  tensor.shape = {static_cast<int64_t>(response->results.size()), first.depth, first.height, first.width};
  for (size_t i = 0; i < response->results.size(); ++i) {
    const auto& volume = std::get<models::Restoration>(response->results[i]);
    if (volume.depth != first.depth || volume.height != first.height || volume.width != first.width) {
      return Invalid(kImageInput, absl::StrCat("volume ", i,
                                               " and volume 0 differ in size, and output 'restored' is one "
                                               "tensor; send only volumes of the same size together"));
    }
    Refer(volume.values, tensor.data);
  }
  return tensor;
}

absl::StatusOr<Values> LabelMaps(const HeldResponse& response) {
  return Maps(response, &models::Segmentation::labels, "label_map", ", or ask for 'areas' alone");
}

absl::StatusOr<Values> DisparityMaps(const HeldResponse& response) {
  return Maps(response, &models::Disparity::values, "disparity", "");
}

absl::StatusOr<Values> DepthMaps(const HeldResponse& response) {
  return Maps(response, &models::Disparity::values, "depth", "");
}

absl::StatusOr<Values> Embeddings(const HeldResponse& response) {
  return Rows(response, &models::Embedding::values, "embedding");
}

absl::StatusOr<Values> Areas(const HeldResponse& response) {
  return Rows(response, &models::Segmentation::areas, "areas");
}

}  // namespace saccade::server
