#include "server/protocols/rest/answer.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/core/bytes_elements.h"
#include "server/core/errors.h"
#include "server/protocols/answer_size.h"

namespace saccade::server {
namespace {

constexpr char kInstead[] =
    "request fewer outputs, ask for binary data, or send fewer or smaller pictures per request";

// The text as a JSON string; nullopt if it is not UTF-8.
std::optional<std::string> Quoted(std::string_view text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

// Like Quoted(), but replaces invalid UTF-8. For texts that are known to be UTF-8, or where that does no
// harm.
std::string QuotedAnyhow(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string AttestationJson(const Attestation& attestation) {
  return absl::StrCat("{\"attestation\":", QuotedAnyhow(attestation.statement),
                      ",\"attestation_signature\":\"", absl::Base64Escape(attestation.signature),
                      "\",\"attestation_public_key\":\"", absl::Base64Escape(attestation.public_key), "\"}");
}

absl::Status NotInJson(absl::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrCat(problem, ", which JSON cannot express; ask for the output with {\"binary_data\": true}"));
}

// Appends the shortest text that parses to the same number. JSON has no numbers that are not finite, so they
// are strings, which NumPy and Python's float() read.
template <typename T>
void AppendElement(T value, std::string& to) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) return to.append("\"NaN\""), void();
    if (std::isinf(value)) return to.append(value < 0 ? "\"-Infinity\"" : "\"Infinity\""), void();
  }
  std::array<char, 40> text;
  const auto end = std::to_chars(text.begin(), text.end(), value).ptr;
  const absl::string_view number(text.data(), static_cast<size_t>(end - text.data()));
  to.append(number.data(), number.size());
  // Clients of many languages take a number without a point for an integer.
  if (std::is_floating_point_v<T> && number.find_first_of(".e") == number.npos) to.append(".0");
}

void AppendElement(bool value, std::string& to) { to += value ? "true" : "false"; }

// Writes one tensor's elements, and limits the size of the whole text.
class ElementsWriter {
 public:
  ElementsWriter(std::string& to, size_t max) : to_(to), max_(max) {}

  absl::Status Write(const Tensor& tensor) {
    switch (tensor.type) {
      case DataType::kBool:
        return Write<bool>(tensor.data);
      case DataType::kUint8:
        return Write<uint8_t>(tensor.data);
      case DataType::kUint16:
        return Write<uint16_t>(tensor.data);
      case DataType::kUint32:
        return Write<uint32_t>(tensor.data);
      case DataType::kUint64:
        return Write<uint64_t>(tensor.data);
      case DataType::kInt8:
        return Write<int8_t>(tensor.data);
      case DataType::kInt16:
        return Write<int16_t>(tensor.data);
      case DataType::kInt32:
        return Write<int32_t>(tensor.data);
      case DataType::kInt64:
        return Write<int64_t>(tensor.data);
      case DataType::kFp32:
        return Write<float>(tensor.data);
      case DataType::kFp64:
        return Write<double>(tensor.data);
      case DataType::kBytes:
        return WriteTexts(tensor);
      case DataType::kFp16:
      case DataType::kBf16:
        break;
    }
    return NotInJson(absl::StrCat("is ", NameOf(tensor.type)));
  }

 private:
  // Writes the separator, and fails if the text has become too large.
  absl::Status Next(int64_t index) {
    if (index > 0) to_ += ',';
    return CheckAnswerSize(to_.size(), static_cast<int64_t>(max_), kInstead);
  }

  template <typename T>
  absl::Status Write(const BytePieces& data) {
    PieceReader reader(data);
    const auto count = static_cast<int64_t>(data.size() / sizeof(T));
    for (int64_t i = 0; i < count; ++i) {
      if (absl::Status room = Next(i); !room.ok()) return room;
      std::array<char, sizeof(T)> bytes;
      reader.Read(sizeof(T), bytes.data());
      T value;
      std::memcpy(&value, bytes.data(), sizeof(T));
      AppendElement(value, to_);
    }
    return absl::OkStatus();
  }

  absl::Status WriteTexts(const Tensor& tensor) {
    const auto count = ElementCount(tensor.shape);
    if (!count.ok()) return count.status();
    const auto texts = SplitBytes(tensor.data, *count);
    if (!texts.ok()) return texts.status();
    for (size_t i = 0; i < texts->elements.size(); ++i) {
      if (absl::Status room = Next(static_cast<int64_t>(i)); !room.ok()) return room;
      const auto text = Quoted(texts->elements[i]);
      if (!text) return NotInJson(absl::StrCat("its element ", i, " is not UTF-8"));
      to_ += *text;
    }
    return absl::OkStatus();
  }

  std::string& to_;
  const size_t max_;
};

}  // namespace

absl::StatusOr<HttpResponse> ToRestAnswer(TensorAnswer answer, absl::string_view id, const RestForm& form,
                                          int64_t max_bytes) {
  HttpResponse response;
  std::string& json = response.body;
  json = "{";
  if (!id.empty()) absl::StrAppend(&json, "\"id\":", QuotedAnyhow(std::string(id)), ",");
  absl::StrAppend(&json, "\"model_name\":", QuotedAnyhow(answer.model), ",\"model_version\":\"",
                  answer.version, "\",");
  if (answer.attestation)
    absl::StrAppend(&json, "\"parameters\":", AttestationJson(*answer.attestation), ",");
  json += "\"outputs\":[";
  size_t attached = 0;
  bool first = true;
  for (Tensor& tensor : answer.outputs) {
    absl::StrAppend(&json, first ? "" : ",", "{\"name\":", QuotedAnyhow(tensor.name), ",\"datatype\":\"",
                    NameOf(tensor.type), "\",\"shape\":", ShapeText(tensor.shape));
    first = false;
    if (tensor.shared) {
      // Like Triton, without parameters: its client expects binary data for every tensor that has some.
      json += '}';
      continue;
    }
    if (form.BinaryOf(tensor.name)) {
      attached += tensor.data.size();
      absl::StrAppend(&json, ",\"parameters\":{\"binary_data_size\":", tensor.data.size(), "}}");
      response.attached.push_back(std::move(tensor.data));
      continue;
    }
    json += ",\"data\":[";
    if (absl::Status written = ElementsWriter(json, static_cast<size_t>(max_bytes)).Write(tensor);
        !written.ok()) {
      return absl::Status(written.code(),
                          absl::StrCat("output ", Shown(tensor.name), ": ", written.message()));
    }
    json += "]}";
  }
  json += "]}";
  if (absl::Status fits = CheckAnswerSize(json.size() + attached, max_bytes, kInstead); !fits.ok())
    return fits;
  if (!response.attached.empty()) {
    response.content_type = "application/octet-stream";
    response.headers.emplace_back(kJsonLengthHeader, absl::StrCat(json.size()));
  }
  return response;
}

}  // namespace saccade::server
