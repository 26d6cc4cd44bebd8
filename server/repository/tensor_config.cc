#include "server/repository/tensor_config.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

constexpr size_t kMaxTensorNameBytes = 256;
constexpr int kMaxDimensions = 16;
constexpr int kMaxTensors = 1024;
// The same as in ElementCount.
constexpr int64_t kMaxElements = int64_t{1} << 40;

// The product of the fixed dimensions, and the number of free ones.
struct Extent {
  int64_t elements = 1;
  int64_t free = 0;

  friend bool operator==(const Extent&, const Extent&) = default;
};

Extent ExtentOf(const std::vector<int64_t>& dims) {
  Extent extent;
  for (const int64_t dim : dims) {
    if (dim < 0) {
      ++extent.free;
    } else {
      // Saturates above the maximum instead of overflowing.
      extent.elements =
          dim > 0 && extent.elements > kMaxElements / dim ? kMaxElements + 1 : extent.elements * dim;
    }
  }
  return extent;
}

template <typename Message>
absl::Status ReadShape(const Message& message, const std::string& field, const ConfigCheck& check,
                       TensorSpec* spec) {
  spec->dims.assign(message.dims().begin(), message.dims().end());
  absl::Status status = CheckDims(spec->dims, 1, true, field + ".dims", check);
  if (!status.ok() || !message.has_reshape()) return status;
  std::vector<int64_t> shape(message.reshape().shape().begin(), message.reshape().shape().end());
  const std::string reshape = field + ".reshape";
  if (!shape.empty()) status = CheckDims(shape, 1, true, reshape + ".shape", check);
  if (!status.ok()) return status;
  if (ExtentOf(shape) != ExtentOf(spec->dims)) {
    return check.Error(reshape, "has shape ", ShapeText(shape),
                       ", expected the same number of elements as dims ", ShapeText(spec->dims),
                       ", and as many dimensions that are -1");
  }
  spec->reshape = std::move(shape);
  return absl::OkStatus();
}

template <typename Message>
absl::Status ReadTensor(const Message& message, const std::string& field, const ConfigCheck& check,
                        std::set<std::string>* names, TensorSpec* spec) {
  spec->name = message.name();
  if (absl::Status status = CheckTensorName(spec->name, field + ".name", check); !status.ok()) return status;
  if (!names->insert(spec->name).second) {
    return check.Error(field + ".name", "is ", Quoted(spec->name),
                       ", which is already used; expected different names");
  }
  const auto type = ReadDataType(message.data_type(), field + ".data_type", check);
  if (!type.ok()) return type.status();
  spec->type = *type;
  return ReadShape(message, field, check, spec);
}

absl::Status ReadFormat(const inference::ModelInput& input, const std::string& field,
                        const ConfigCheck& check, TensorSpec* spec) {
  if (input.format() == inference::ModelInput::FORMAT_NONE) return absl::OkStatus();
  const bool nhwc = input.format() == inference::ModelInput::FORMAT_NHWC;
  spec->format = nhwc ? TensorSpec::Format::kNhwc : TensorSpec::Format::kNchw;
  if (spec->dims.size() == 3) return absl::OkStatus();
  return check.Error(field + ".format", "is ", inference::ModelInput::Format_Name(input.format()),
                     ", which requires 3 dims; got ", ShapeText(spec->dims));
}

}  // namespace

absl::StatusOr<DataType> ReadDataType(inference::DataType type, absl::string_view field,
                                      const ConfigCheck& check) {
  // TYPE_STRING is BYTES in the protocol; the other names are those of the protocol with the prefix TYPE_.
  if (type == inference::TYPE_STRING) return DataType::kBytes;
  const std::string& name = inference::DataType_Name(type);
  if (type != inference::TYPE_INVALID && name.size() > 5) {
    if (const auto known = DataTypeOf(absl::string_view(name).substr(5))) return *known;
  }
  return check.Error(field, "is missing; expected TYPE_FP32, TYPE_UINT8, TYPE_STRING or another TYPE_");
}

absl::Status CheckDims(const std::vector<int64_t>& dims, int64_t min, bool free, absl::string_view field,
                       const ConfigCheck& check) {
  if (dims.empty()) return check.Error(field, "is missing; expected the shape without the batch dimension");
  if (dims.size() > kMaxDimensions) {
    return check.Error(field, "has ", dims.size(), " dimensions, expected at most ", kMaxDimensions);
  }
  for (const int64_t dim : dims) {
    if (dim >= min || (free && dim == -1)) continue;
    return check.Error(field, "holds ", dim, ", expected ", min, " or more", free ? ", or -1 for any" : "");
  }
  if (ExtentOf(dims).elements <= kMaxElements) return absl::OkStatus();
  return check.Error(field, "is ", ShapeText(dims), ", more than the maximum of ", kMaxElements, " elements");
}

absl::Status CheckTensorName(const std::string& name, absl::string_view field, const ConfigCheck& check) {
  if (name.empty()) return check.Error(field, "is missing");
  const auto printable = [](unsigned char c) { return absl::ascii_isprint(c); };
  if (name.size() <= kMaxTensorNameBytes && std::all_of(name.begin(), name.end(), printable))
    return absl::OkStatus();
  return check.Error(field, "is ", Quoted(name), ", expected at most ", kMaxTensorNameBytes,
                     " printable ASCII characters");
}

absl::Status CheckFileName(absl::string_view field, const std::string& name, const ConfigCheck& check) {
  if (!name.empty() && name.front() != '.' && name.find('/') == std::string::npos) return absl::OkStatus();
  return check.Error(field, "is ", Quoted(name), ", expected the plain name of a file, without a folder");
}

absl::Status ReadTensors(const inference::ModelConfig& config, const ConfigCheck& check,
                         ModelSettings* settings, std::vector<std::string>* label_files) {
  if (config.input_size() > kMaxTensors || config.output_size() > kMaxTensors) {
    return check.Error(config.input_size() > kMaxTensors ? "input" : "output", "is given more than ",
                       kMaxTensors, " times");
  }
  std::set<std::string> names;
  for (int i = 0; i < config.input_size(); ++i) {
    const std::string field = absl::StrCat("input[", i, "]");
    TensorSpec spec;
    absl::Status status = ReadTensor(config.input(i), field, check, &names, &spec);
    if (status.ok()) status = ReadFormat(config.input(i), field, check, &spec);
    if (!status.ok()) return status;
    spec.optional = config.input(i).optional();
    settings->inputs.push_back(std::move(spec));
  }
  names.clear();
  for (int i = 0; i < config.output_size(); ++i) {
    const std::string field = absl::StrCat("output[", i, "]");
    TensorSpec spec;
    if (absl::Status status = ReadTensor(config.output(i), field, check, &names, &spec); !status.ok())
      return status;
    const std::string& labels = config.output(i).label_filename();
    if (!labels.empty()) {
      if (absl::Status status = CheckFileName(field + ".label_filename", labels, check); !status.ok())
        return status;
    }
    label_files->push_back(labels);
    settings->outputs.push_back(std::move(spec));
  }
  return absl::OkStatus();
}

}  // namespace saccade::server
