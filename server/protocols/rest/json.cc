#include "server/protocols/rest/json.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "server/core/errors.h"
#include "server/core/json_text.h"
#include "server/protocols/rest/elements.h"

namespace saccade::server {
namespace {

using Json = nlohmann::json;

// Limits above what any request needs, and small enough for memory.
constexpr size_t kMaxDepth = 40;
constexpr size_t kMaxTensors = 1024;
constexpr size_t kMaxParameters = 256;
// Parameters of the request and of all its tensors together.
constexpr size_t kMaxAllParameters = 8192;
// Events of the parser between two looks at the cancellation.
constexpr size_t kEventsPerLook = 4096;
// Memory that a string takes, as a multiple of its length: the parser's buffer, which doubles, and the copy
// that is kept, which may double too.
constexpr size_t kStringFactor = 6;
// Memory that a string takes beside that.
constexpr size_t kStringBytes = 12;
// The parser keeps what it read since the last value in a buffer, which doubles.
constexpr size_t kStructureFactor = 3;

enum class Place {
  kRequest,
  kParameters,
  kTensors,
  kTensor,
  kShape,
  kData,
  // Data that precede their type or shape.
  kDeferred,
  // An ignored value.
  kSkipped,
};

absl::Status Expected(const std::string& where, absl::string_view what, absl::string_view got) {
  return Invalid(where, absl::StrCat("expected ", what, ", got ", got));
}

// Receives the parser's events in the order of the text. Each callback returns whether to continue.
class Reader {
 public:
  // `known` is the result of an earlier pass over the same text of `text_bytes` bytes, needed for inputs
  // whose data precede their type or shape. `values` is the number of values and names of that pass, and is
  // counted on.
  Reader(size_t text_bytes, const RestLimits& limits, const RestJson* known, size_t* values)
      : text_bytes_(text_bytes),
        limits_(limits),
        max_values_(MaxValues(limits)),
        known_(known),
        values_(values) {}

  bool null() { return Value(nullptr, "null"); }
  bool boolean(bool value) { return Value(value, "true or false"); }
  bool number_integer(Json::number_integer_t value) { return Value(int64_t{value}, "a number"); }
  bool number_unsigned(Json::number_unsigned_t value) { return Value(uint64_t{value}, "a number"); }
  bool number_float(Json::number_float_t value, const std::string& /*text*/) {
    return Value(value, "a number");
  }
  bool string(std::string& value) { return Value(absl::string_view(value), "a string"); }
  bool binary(Json::binary_t& /*value*/) { return Fail(absl::InternalError("JSON has no binary values")); }

  bool start_object(size_t /*size*/) { return Start(true); }
  bool end_object() { return EndObject(); }
  bool start_array(size_t /*size*/) { return Start(false); }
  bool end_array() { return EndArray(); }
  bool key(std::string& name) {
    if (!Count()) return false;
    if (Skips()) return Skip();
    key_ = name;
    return true;
  }
  bool parse_error(size_t position, const std::string& /*token*/, const Json::exception& error) {
    // Removes the library's own prefix.
    absl::string_view what = error.what();
    what.remove_prefix(std::min(what.size(), what.find("] ") + 2));
    return Fail(absl::InvalidArgumentError(
        absl::StrCat("the request is not valid JSON at byte ", position, ": ", Shown(what))));
  }

  const absl::Status& status() const { return status_; }
  // True if data were skipped that a second pass can read.
  bool deferred() const { return deferred_; }
  RestJson Take() { return std::move(request_); }

 private:
  bool Fail(absl::Status why) {
    if (status_.ok()) status_ = std::move(why);
    return false;
  }
  bool Unexpected(absl::string_view what, absl::string_view got) {
    return Fail(Expected(Where(), what, got));
  }
  // Fails with an error about the current tensor if `status` is an error.
  bool InTensor(const absl::Status& status) {
    return status.ok() || Fail(Invalid(TensorName(), std::string(status.message())));
  }

  RestTensor& tensor() { return tensors().back(); }
  std::vector<RestTensor>& tensors() { return of_outputs_ ? request_.outputs : request_.inputs; }
  // The current input, as far as its type and shape are known.
  const RestTensor& Described() {
    return known_ != nullptr ? known_->inputs.at(request_.inputs.size() - 1) : tensor();
  }
  std::string TensorName();
  std::string Where();

  // Whether an ignored value is being read.
  bool Skips() const { return !places_.empty() && places_.back() == Place::kSkipped; }
  static size_t MaxValues(const RestLimits& limits) {
    if (!limits.compressed_bytes) return std::numeric_limits<size_t>::max();
    return std::max(kMaxCompressedRestValues, kMaxCompressedRestValuesPerByte * *limits.compressed_bytes);
  }
  // Counts a value or name. False if there are too many, or if the client has gone.
  bool Count();
  // Counts a value or name that is ignored.
  bool Skip();
  // Looks whether the client has gone, now and then.
  bool Look();
  absl::Status Charge(size_t bytes);

  bool Start(bool object);
  bool Push(Place place, bool object, bool expected_object, absl::string_view what);
  bool StartInRequest(bool object);
  bool StartInTensor(bool object);
  bool StartData();
  bool EndObject();
  bool EndArray();
  bool Value(const RestElement& value, absl::string_view kind);
  bool ValueInRequest(const RestElement& value, absl::string_view kind);
  bool ValueInTensor(const RestElement& value, absl::string_view kind);
  bool AddExtent(const RestElement& value, absl::string_view kind);
  bool AddParameter(const RestElement& value, absl::string_view kind);

  const size_t text_bytes_;
  const RestLimits& limits_;
  const size_t max_values_;
  const RestJson* const known_;
  size_t* const values_;
  RestJson request_;
  absl::Status status_;
  bool deferred_ = false;
  // The parser's position, the outermost first.
  std::vector<Place> places_;
  std::string key_;
  bool of_outputs_ = false;
  bool has_inputs_ = false;
  bool has_outputs_ = false;
  bool has_data_ = false;
  // Size of the elements of all inputs.
  size_t data_bytes_ = 0;
  size_t events_ = 0;
  size_t skipped_ = 0;
  size_t all_parameters_ = 0;
  std::optional<RestElements> elements_;
};

std::string Reader::TensorName() {
  const RestTensor& described = of_outputs_ || tensor().name ? tensor() : Described();
  const std::string name =
      described.name ? Shown(*described.name) : absl::StrCat("number ", tensors().size());
  return absl::StrCat(of_outputs_ ? "output " : "input ", name);
}

std::string Reader::Where() {
  if (places_.empty()) return "request";
  switch (places_.back()) {
    case Place::kRequest:
      return key_;
    case Place::kTensors:
      return of_outputs_ ? "outputs" : "inputs";
    case Place::kShape:
      return absl::StrCat(TensorName(), ": shape");
    case Place::kParameters:
      return absl::StrCat(places_.size() > 2 ? TensorName() + ": " : "", "parameter ", Shown(key_));
    default:
      return absl::StrCat(TensorName(), ": ", key_);
  }
}

bool Reader::Count() {
  if (++*values_ <= max_values_) return Look();
  return Fail(absl::InvalidArgumentError(
      absl::StrCat("the request came compressed, and its JSON has more values and names than the ",
                   max_values_, " that ", *limits_.compressed_bytes,
                   " compressed bytes may have; send it uncompressed, or tensors as binary data")));
}

bool Reader::Skip() {
  if (++skipped_ <= kMaxJsonValues) return Look();
  return Fail(absl::InvalidArgumentError(
      absl::StrCat("the request's members that are not of the protocol have more than ", kMaxJsonValues,
                   " values; send only what the protocol names")));
}

bool Reader::Look() {
  if (limits_.cancellation == nullptr || ++events_ % kEventsPerLook != 0) return true;
  return !limits_.cancellation->cancelled() || Fail(absl::CancelledError("the client has gone"));
}

absl::Status Reader::Charge(size_t bytes) {
  if (limits_.ledger == nullptr) return absl::OkStatus();
  auto charge = limits_.ledger->Charge(limits_.client, static_cast<int64_t>(bytes));
  if (!charge.ok()) return charge.status();
  request_.charges.push_back(*std::move(charge));
  return absl::OkStatus();
}

bool Reader::Push(Place place, bool object, bool expected_object, absl::string_view what) {
  if (object != expected_object) return Unexpected(what, object ? "an object" : "an array");
  places_.push_back(place);
  return true;
}

bool Reader::Start(bool object) {
  if (!Count()) return false;
  if (places_.size() >= kMaxDepth) {
    return Fail(
        absl::InvalidArgumentError(absl::StrCat("the request nests deeper than ", kMaxDepth, " levels")));
  }
  if (places_.empty()) return Push(Place::kRequest, object, true, "an object with \"inputs\"");
  switch (places_.back()) {
    case Place::kRequest:
      return StartInRequest(object);
    case Place::kTensors:
      if (tensors().size() >= kMaxTensors) {
        return Fail(Invalid(Where(), absl::StrCat("has more than ", kMaxTensors, " entries")));
      }
      if (!Push(Place::kTensor, object, true, "an object with \"name\"")) return false;
      tensors().emplace_back();
      has_data_ = false;
      return true;
    case Place::kTensor:
      return StartInTensor(object);
    case Place::kData:
      if (object) return Unexpected("numbers, strings, true or false", "an object");
      places_.push_back(Place::kData);
      elements_->StartArray();
      return true;
    case Place::kShape:
    case Place::kParameters:
      return Unexpected(places_.back() == Place::kShape ? "integers" : "a string, a number, true or false",
                        object ? "an object" : "an array");
    case Place::kDeferred:
      if (object) return Unexpected("numbers, strings, true or false", "an object");
      places_.push_back(Place::kDeferred);
      return true;
    case Place::kSkipped:
      break;
  }
  places_.push_back(Place::kSkipped);
  return Skip();
}

bool Reader::StartInRequest(bool object) {
  if (key_ == "inputs" || key_ == "outputs") {
    of_outputs_ = key_ == "outputs";
    bool& has = of_outputs_ ? has_outputs_ : has_inputs_;
    if (has) return Fail(Invalid(key_, "is given twice"));
    has = true;
    return Push(Place::kTensors, object, false, "an array");
  }
  if (key_ == "parameters") return Push(Place::kParameters, object, true, "an object");
  if (key_ == "id") return Unexpected("a string", object ? "an object" : "an array");
  places_.push_back(Place::kSkipped);
  return Skip();
}

bool Reader::StartInTensor(bool object) {
  if (key_ == "parameters") return Push(Place::kParameters, object, true, "an object");
  if (key_ == "shape") {
    if (tensor().shape) return Fail(Invalid(Where(), "is given twice"));
    tensor().shape.emplace();
    return Push(Place::kShape, object, false, "an array of integers");
  }
  if (key_ == "name" || key_ == "datatype") return Unexpected("a string", object ? "an object" : "an array");
  if (key_ == "data" && !of_outputs_) {
    if (object) return Unexpected("an array", "an object");
    return StartData();
  }
  places_.push_back(Place::kSkipped);
  return Skip();
}

bool Reader::StartData() {
  if (has_data_) return Fail(Invalid(Where(), "is given twice"));
  has_data_ = true;
  if (!Described().type || !Described().shape) {
    deferred_ = true;
    places_.push_back(Place::kDeferred);
    return true;
  }
  const DataType type = *Described().type;
  const std::vector<int64_t>& shape = *Described().shape;
  const size_t left = limits_.max_bytes - data_bytes_;
  // Each element has at least a character, and one beside it. Strings are charged already, by their length.
  const size_t in_text = text_bytes_ / 2 * SizeOf(type);
  const auto count = ElementCount(shape);
  const size_t in_shape = count.ok() ? static_cast<size_t>(*count) * SizeOf(type) : in_text;
  const size_t room = std::min({left, in_text, in_shape});
  if (absl::Status charged = Charge(room); !charged.ok()) return Fail(std::move(charged));
  elements_.emplace(type, shape, left, room);
  places_.push_back(Place::kData);
  elements_->StartArray();
  return true;
}

bool Reader::EndObject() {
  places_.pop_back();
  return true;
}

bool Reader::EndArray() {
  const Place place = places_.back();
  places_.pop_back();
  if (place != Place::kData) return true;
  elements_->EndArray();
  if (!elements_->done()) return true;
  const auto expected = ElementCount(*Described().shape);
  if (!expected.ok()) return InTensor(expected.status());
  if (elements_->count() != *expected) {
    return Fail(Invalid(TensorName(), absl::StrCat("data: has ", elements_->count(),
                                                   " elements, but the shape requires ", *expected)));
  }
  tensor().data = elements_->Take();
  data_bytes_ += tensor().data->size();
  elements_.reset();
  return true;
}

bool Reader::Value(const RestElement& value, absl::string_view kind) {
  if (!Count()) return false;
  if (places_.empty()) return Unexpected("an object with \"inputs\"", kind);
  switch (places_.back()) {
    case Place::kRequest:
      return ValueInRequest(value, kind);
    case Place::kTensors:
      return Unexpected("an object with \"name\"", kind);
    case Place::kTensor:
      return ValueInTensor(value, kind);
    case Place::kShape:
      return AddExtent(value, kind);
    case Place::kParameters:
      return AddParameter(value, kind);
    case Place::kData:
      return InTensor(elements_->Add(value));
    case Place::kDeferred:
      return true;
    case Place::kSkipped:
      break;
  }
  return Skip();
}

bool Reader::ValueInRequest(const RestElement& value, absl::string_view kind) {
  if (key_ == "inputs" || key_ == "outputs") return Unexpected("an array", kind);
  if (key_ == "parameters") return Unexpected("an object", kind);
  if (key_ != "id") return Skip();
  const auto* text = std::get_if<absl::string_view>(&value);
  if (text == nullptr) return Unexpected("a string", kind);
  request_.id = std::string(*text);
  return true;
}

bool Reader::ValueInTensor(const RestElement& value, absl::string_view kind) {
  if (key_ == "shape" || (key_ == "data" && !of_outputs_)) return Unexpected("an array", kind);
  if (key_ == "parameters") return Unexpected("an object", kind);
  if (key_ != "name" && key_ != "datatype") return Skip();
  const auto* text = std::get_if<absl::string_view>(&value);
  if (text == nullptr) return Unexpected("a string", kind);
  if (key_ == "name" ? tensor().name.has_value() : tensor().type.has_value()) {
    return Fail(Invalid(Where(), "is given twice"));
  }
  if (key_ == "name") {
    tensor().name = std::string(*text);
    return true;
  }
  tensor().type = DataTypeOf(*text);
  if (tensor().type || of_outputs_) return true;
  return Fail(
      Invalid(TensorName(), absl::StrCat("the datatype is ", Shown(*text),
                                         ", expected a datatype of the protocol, such as FP32 or BYTES")));
}

bool Reader::AddExtent(const RestElement& value, absl::string_view kind) {
  const auto* extent = std::get_if<uint64_t>(&value);
  if (extent == nullptr || *extent > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return Unexpected("non-negative integers", kind);
  }
  if (tensor().shape->size() >= kMaxTensorExtents) {
    return Fail(Invalid(Where(), absl::StrCat("has more than ", kMaxTensorExtents, " extents")));
  }
  tensor().shape->push_back(static_cast<int64_t>(*extent));
  return true;
}

bool Reader::AddParameter(const RestElement& value, absl::string_view kind) {
  RestParameters& parameters = places_.size() > 2 ? tensor().parameters : request_.parameters;
  if (parameters.size() >= kMaxParameters) {
    return Fail(Invalid("parameters", absl::StrCat("has more than ", kMaxParameters, " entries")));
  }
  if (++all_parameters_ > kMaxAllParameters) {
    return Fail(
        Invalid("parameters", absl::StrCat("there are more than ", kMaxAllParameters, " of all tensors")));
  }
  RestValue kept;
  if (const auto* flag = std::get_if<bool>(&value)) {
    kept = *flag;
  } else if (const auto* negative = std::get_if<int64_t>(&value)) {
    kept = *negative;
  } else if (const auto* natural = std::get_if<uint64_t>(&value)) {
    kept = *natural;
  } else if (const auto* real = std::get_if<double>(&value)) {
    kept = *real;
  } else if (const auto* text = std::get_if<absl::string_view>(&value)) {
    kept = std::string(*text);
  } else {
    return Unexpected("a string, a number, true or false", kind);
  }
  parameters.emplace_back(key_, std::move(kept));
  return true;
}

absl::StatusOr<RestJson> Read(absl::string_view text, const RestLimits& limits, const RestJson* known,
                              bool* deferred, size_t* values) {
  Reader reader(text.size(), limits, known, values);
  Json::sax_parse(text.begin(), text.end(), &reader);
  if (!reader.status().ok()) return reader.status();
  *deferred = reader.deferred();
  return reader.Take();
}

absl::StatusOr<ByteCharge> ChargeText(const JsonExtent& extent, const RestLimits& limits) {
  if (limits.ledger == nullptr) return ByteCharge();
  const size_t bytes = kStringFactor * extent.string_bytes + kStringBytes * extent.strings +
                       kStructureFactor * extent.structure_bytes;
  return limits.ledger->Charge(limits.client, static_cast<int64_t>(bytes));
}

}  // namespace

absl::StatusOr<RestJson> ParseRestJson(absl::string_view text, const RestLimits& limits) {
  const auto extent = MeasureJson(text);
  if (!extent.ok()) return extent.status();
  auto charge = ChargeText(*extent, limits);
  if (!charge.ok()) return charge.status();
  bool deferred = false;
  size_t values = 0;
  auto request = Read(text, limits, nullptr, &deferred, &values);
  // Some clients write "data" before the datatype or the shape. After the first pass these are known.
  if (request.ok() && deferred) {
    const RestJson known = *std::move(request);
    request = Read(text, limits, &known, &deferred, &values);
  }
  if (request.ok()) request->charges.push_back(*std::move(charge));
  return request;
}

}  // namespace saccade::server
