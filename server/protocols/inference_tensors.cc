#include "server/protocols/inference_tensors.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/protocols/inference_errors.h"
#include "server/protocols/inference_inputs.h"

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

OutputTensor Made(std::vector<int64_t> shape, std::string bytes) {
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  const std::string_view view = *owner;
  return {.shape = std::move(shape), .data = BytePieces(view, std::move(owner))};
}

// Values that stay where they are.
template <typename T>
void Refer(const std::vector<T>& values, BytePieces& data) {
  data.Add({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
}

// [n, ...] of one row of `T` a picture.
template <typename Result, typename T>
OutputTensor Rows(const Response& response, std::vector<T> Result::* values) {
  OutputTensor tensor;
  const auto& first = std::get<Result>(response.results.at(0)).*values;
  tensor.shape = {static_cast<int64_t>(response.results.size()), static_cast<int64_t>(first.size())};
  for (const models::TaskResult& result : response.results) {
    Refer(std::get<Result>(result).*values, tensor.data);
  }
  return tensor;
}

// [n]: how many items each result has.
template <typename Result>
OutputTensor Counts(const Response& response) {
  std::string bytes;
  for (const models::TaskResult& result : response.results) {
    const auto count = static_cast<int64_t>(std::get<Result>(result).items.size());
    Append(&count, 1, bytes);
  }
  return Made({static_cast<int64_t>(response.results.size())}, std::move(bytes));
}

// [n, most, extents...]: what `append` writes of each item; it is told which result's it is.
template <typename Result, typename T, typename AppendOne>
OutputTensor PerItem(const Response& response, std::initializer_list<int64_t> extents, AppendOne append) {
  size_t most = 0;
  for (const models::TaskResult& result : response.results) {
    most = std::max(most, std::get<Result>(result).items.size());
  }
  std::vector<int64_t> shape = {static_cast<int64_t>(response.results.size()), static_cast<int64_t>(most)};
  size_t item_bytes = sizeof(T);
  for (const int64_t extent : extents) {
    shape.push_back(extent);
    item_bytes *= static_cast<size_t>(extent);
  }
  std::string bytes;
  bytes.reserve(response.results.size() * most * item_bytes);
  for (size_t i = 0; i < response.results.size(); ++i) {
    for (const auto& item : std::get<Result>(response.results[i]).items) append(item, i, bytes);
    bytes.resize((i + 1) * most * item_bytes, '\0');
  }
  return Made(std::move(shape), std::move(bytes));
}

template <typename Result>
OutputTensor ScoresOf(const Response& response) {
  return PerItem<Result, float>(
      response, {}, [](const auto& item, size_t, std::string& bytes) { Append(&item.score, 1, bytes); });
}

template <typename Result>
OutputTensor LabelsOf(const Response& response) {
  return PerItem<Result, int64_t>(
      response, {}, [](const auto& item, size_t, std::string& bytes) { Append(&item.label, 1, bytes); });
}

// Of the frames that the network saw; a tensor's are the model's own.
double FrameRate(const Response& response, size_t item) {
  if (item < response.sent.size()) return response.sent[item].frames_per_second;
  return response.description->input.clip.frames_per_second;
}

// [n, height, width] of maps that all have one size. `advice` is what else the client may do.
template <typename Result, typename T>
absl::StatusOr<OutputTensor> Maps(const Response& response, std::vector<T> Result::* values,
                                  absl::string_view output, absl::string_view advice) {
  const auto& first = std::get<Result>(response.results.at(0));
  OutputTensor tensor;
  tensor.shape = {static_cast<int64_t>(response.results.size()), first.height, first.width};
  for (size_t i = 0; i < response.results.size(); ++i) {
    const auto& map = std::get<Result>(response.results[i]);
    if (map.height != first.height || map.width != first.width) {
      return Invalid(
          kInferenceInput,
          absl::StrCat("picture ", i, " has ", map.width, " x ", map.height, " pixels, picture 0 has ",
                       first.width, " x ", first.height, ", and output '", output,
                       "' is one tensor; send pictures of one size together", advice));
    }
    Refer(map.*values, tensor.data);
  }
  return tensor;
}

}  // namespace

OutputTensor Logits(const Response& response) { return Rows(response, &models::Classification::logits); }

OutputTensor DetectionCounts(const Response& response) { return Counts<models::Detections>(response); }

OutputTensor Boxes(const Response& response) {
  return PerItem<models::Detections, float>(
      response, {4}, [](const models::Detection& item, size_t, std::string& bytes) {
        const float box[] = {item.x_min, item.y_min, item.x_max, item.y_max};
        Append(box, 4, bytes);
      });
}

OutputTensor Scores(const Response& response) { return ScoresOf<models::Detections>(response); }

OutputTensor Labels(const Response& response) { return LabelsOf<models::Detections>(response); }

OutputTensor Masks(const Response& response) {
  const int64_t side = std::get<models::Detections>(response.results.at(0)).mask_side;
  return PerItem<models::Detections, float>(
      response, {side, side},
      [](const models::Detection& item, size_t, std::string& bytes) { Append(item.mask, bytes); });
}

OutputTensor ActionCounts(const Response& response) { return Counts<models::Actions>(response); }

OutputTensor ActionSegments(const Response& response) {
  return PerItem<models::Actions, float>(
      response, {2}, [&](const models::Action& item, size_t clip, std::string& bytes) {
        const double rate = FrameRate(response, clip);
        const float segment[] = {static_cast<float>(item.start / rate), static_cast<float>(item.end / rate)};
        Append(segment, 2, bytes);
      });
}

OutputTensor ActionScores(const Response& response) { return ScoresOf<models::Actions>(response); }

OutputTensor ActionLabels(const Response& response) { return LabelsOf<models::Actions>(response); }

absl::StatusOr<OutputTensor> RestoredVolumes(const Response& response) {
  const auto& first = std::get<models::Restoration>(response.results.at(0));
  OutputTensor tensor;
  tensor.shape = {static_cast<int64_t>(response.results.size()), first.depth, first.height, first.width};
  for (size_t i = 0; i < response.results.size(); ++i) {
    const auto& volume = std::get<models::Restoration>(response.results[i]);
    if (volume.depth != first.depth || volume.height != first.height || volume.width != first.width) {
      return Invalid(kInferenceInput,
                     absl::StrCat("volume ", i,
                                  " and volume 0 differ in size, and output 'restored' is one "
                                  "tensor; send volumes of one size together"));
    }
    Refer(volume.values, tensor.data);
  }
  return tensor;
}

absl::StatusOr<OutputTensor> LabelMaps(const Response& response) {
  return Maps(response, &models::Segmentation::labels, "label_map", ", or ask for 'areas' alone");
}

absl::StatusOr<OutputTensor> DisparityMaps(const Response& response) {
  return Maps(response, &models::Disparity::values, "disparity", "");
}

OutputTensor Areas(const Response& response) { return Rows(response, &models::Segmentation::areas); }

}  // namespace saccade::server
