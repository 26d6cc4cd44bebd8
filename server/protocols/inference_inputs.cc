#include "server/protocols/inference_inputs.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/internal/endian.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/protocols/inference_errors.h"

namespace saccade::server {
namespace {

constexpr absl::string_view kInput = "image";
constexpr int64_t kMaxElements = int64_t{1} << 40;
constexpr int64_t kMaxViews = 65535;

using InputTensor = inference::ModelInferRequest::InferInputTensor;

absl::Status InvalidInput(absl::string_view problem) { return Invalid(kInferenceInput, problem); }

absl::StatusOr<int64_t> ElementsOf(const InputTensor& tensor) {
  int64_t elements = 1;
  for (const int64_t extent : tensor.shape()) {
    if (extent < 0 || (extent > 0 && elements > kMaxElements / extent)) {
      return InvalidInput(
          absl::StrCat("the shape [", absl::StrJoin(tensor.shape(), ","), "] is not one of a tensor"));
    }
    elements *= extent;
  }
  return elements;
}

// Raw contents, or null if the tensor's elements are typed.
absl::StatusOr<const BytePieces*> RawContents(const InferenceRequest& received) {
  if (received.raw_count == 0) return nullptr;
  if (received.raw_count != 1) {
    return Invalid("raw_input_contents",
                   absl::StrCat("has ", received.raw_count, " entries; expected one per input, which is 1"));
  }
  if (received.fields.inputs(0).has_contents()) {
    return InvalidInput("has both contents and raw_input_contents; send one of them");
  }
  return &received.raw;
}

absl::StatusOr<InferencePictures> FromFloats(const InputTensor& tensor, const BytePieces* raw) {
  auto elements = ElementsOf(tensor);
  if (!elements.ok()) return elements.status();
  const auto& typed = tensor.contents().fp32_contents();
  BytePieces bytes = raw != nullptr ? *raw : absl::MakeConstSpan(typed.data(), typed.size());
  if (static_cast<int64_t>(bytes.size()) != *elements * static_cast<int64_t>(sizeof(float))) {
    return InvalidInput(absl::StrCat("holds ", bytes.size(), " bytes; FP32 of shape [",
                                     absl::StrJoin(tensor.shape(), ","), "] is ", *elements * sizeof(float)));
  }
  return InferencePictures{.input = TensorInput{.shape = {tensor.shape().begin(), tensor.shape().end()},
                                                .data = std::move(bytes)}};
}

// A file is read as a whole: what came in pieces is put together, once.
SharedBytes Whole(const BytePieces& raw) {
  if (raw.size() == 0) return {};
  if (raw.pieces().size() == 1) return {.owner = nullptr, .bytes = raw.pieces()[0]};
  auto owner = std::make_shared<std::string>(raw.size(), '\0');
  raw.CopyTo(owner->data());
  const std::string_view bytes = *owner;
  return {.owner = std::move(owner), .bytes = bytes};
}

// Elements of a BYTES tensor: each a 4-byte little-endian length and as many bytes.
absl::StatusOr<std::vector<std::string_view>> SplitBytes(std::string_view raw, int64_t expected) {
  std::vector<std::string_view> elements;
  while (!raw.empty()) {
    if (raw.size() < 4) return InvalidInput("the BYTES contents end within an element's 4-byte length");
    const uint32_t length = absl::little_endian::Load32(raw.data());
    raw.remove_prefix(4);
    if (length > raw.size()) {
      return InvalidInput(absl::StrCat("element ", elements.size(), " says it has ", length, " bytes, but ",
                                       raw.size(), " are left"));
    }
    if (static_cast<int64_t>(elements.size()) == expected) break;
    elements.push_back(raw.substr(0, length));
    raw.remove_prefix(length);
  }
  if (static_cast<int64_t>(elements.size()) != expected || !raw.empty()) {
    return InvalidInput(absl::StrCat("the shape says ", expected, " BYTES elements; the contents hold ",
                                     raw.empty() ? "fewer" : "more"));
  }
  return elements;
}

absl::StatusOr<std::vector<std::string_view>> BytesElements(const InputTensor& tensor, bool raw,
                                                            const SharedBytes& whole) {
  auto count = ElementsOf(tensor);
  if (!count.ok()) return count.status();
  if (raw) return SplitBytes(whole.bytes, *count);
  const auto& typed = tensor.contents().bytes_contents();
  if (typed.size() != *count) {
    return InvalidInput(
        absl::StrCat("the shape says ", *count, " elements, bytes_contents has ", typed.size()));
  }
  return std::vector<std::string_view>(typed.begin(), typed.end());
}

absl::StatusOr<InferencePictures> FromBytes(const InputTensor& tensor, const BytePieces* raw) {
  const int rank = tensor.shape_size();
  const int64_t views = rank == 2 ? tensor.shape(1) : 1;
  if ((rank != 1 && rank != 2) || views < 1 || views > kMaxViews) {
    return InvalidInput(
        absl::StrCat("the shape of BYTES is [", absl::StrJoin(tensor.shape(), ","),
                     "], expected [n] or [n,1], one encoded picture, video or TIFF an element, "
                     "[n,2], the left and right pictures of stereo pairs, or [n,frames], the "
                     "frames of clips"));
  }
  const SharedBytes whole = raw != nullptr ? Whole(*raw) : SharedBytes{};
  auto elements = BytesElements(tensor, raw != nullptr, whole);
  if (!elements.ok()) return elements.status();
  std::vector<Picture> pictures;
  pictures.reserve(elements->size());
  for (const std::string_view element : *elements) {
    pictures.push_back(EncodedPicture{.data = {.owner = whole.owner, .bytes = element}});
  }
  return InferencePictures{.input = std::move(pictures), .views = static_cast<int>(views)};
}

}  // namespace

absl::StatusOr<InferencePictures> InputOf(const InferenceRequest& received) {
  const inference::ModelInferRequest& message = received.fields;
  if (message.inputs_size() != 1) {
    return Invalid("inputs", absl::StrCat("has ", message.inputs_size(), " tensors; expected 1, 'image'"));
  }
  const InputTensor& tensor = message.inputs(0);
  if (tensor.name() != kInput) {
    return Invalid("inputs",
                   absl::StrCat("no input is named ", Shown(tensor.name()), "; the model's is 'image'"));
  }
  if (tensor.parameters().contains("shared_memory_region")) {
    return absl::UnimplementedError(
        absl::StrCat(kInferenceInput, ": shared_memory_region is not served; send the bytes"));
  }
  auto raw = RawContents(received);
  if (!raw.ok()) return raw.status();
  if (tensor.datatype() == "FP32") return FromFloats(tensor, *raw);
  if (tensor.datatype() == "BYTES") return FromBytes(tensor, *raw);
  return InvalidInput(absl::StrCat("the datatype is ", Shown(tensor.datatype()),
                                   ", expected FP32 (normalised pixels) or BYTES (encoded pictures)"));
}

void DescribeInput(const models::ImageInput& input,
                   inference::ModelMetadataResponse::TensorMetadata* message) {
  message->set_name(std::string(kInput));
  message->add_shape(-1);
  if (input.medium != models::Medium::kPictures) {
    message->set_datatype("BYTES");
    // A video or a TIFF an element, or a clip's frames.
    message->add_shape(input.medium == models::Medium::kClip ? -1 : 1);
    return;
  }
  if (input.fit == models::Fit::kKeepRatio) {
    message->set_datatype("BYTES");
    message->add_shape(input.views);
    return;
  }
  message->set_datatype("FP32");
  for (const int64_t extent : {input.channels(), input.height, input.width}) message->add_shape(extent);
}

}  // namespace saccade::server
