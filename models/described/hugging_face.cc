#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "models/api/error.h"
#include "models/api/text.h"
#include "models/described/json_tree.h"
#include "models/described/picture_program.h"
#include "models/described/preprocessor_config.h"

namespace saccade::models {
namespace {

using Kind = JsonValue::Kind;

[[noreturn]] void Fail(const std::string& what) { throw LoadError(what); }

// Returns what `read` does. Its errors get the name of the file that it reads.
template <typename Read>
auto Named(const char* file, const Read& read) {
  try {
    return read();
  } catch (const LoadError& error) {
    Fail(std::string(file) + ": " + error.what());
  }
}

struct KnownHead {
  const char* ending;
  HeadKind kind;
  std::vector<Role> roles;
};

const std::vector<KnownHead>& KnownHeads() {
  static const std::vector<KnownHead> known = {
      {"ForImageClassification", HeadKind::kClasses, {Role::kLogits}},
      {"ForObjectDetection", HeadKind::kSets, {Role::kLogits, Role::kBoxes}},
      {"ForSemanticSegmentation", HeadKind::kSemantic, {Role::kLogits}},
      {"ForDepthEstimation", HeadKind::kDepth, {Role::kDepth}},
      {"Model", HeadKind::kEmbedding, {Role::kEmbedding}}};
  return known;
}

// The names that these libraries give to the outputs of exported networks.
const char* OutputName(Role role) {
  if (role == Role::kBoxes) return "pred_boxes";
  if (role == Role::kDepth) return "predicted_depth";
  return role == Role::kEmbedding ? "pooler_output" : "logits";
}

// What transformers' processor of a detector reads from its outputs. Nothing in the folder says it.
struct KnownDetector {
  std::string_view name;
  // Whether scores are sigmoids, without a class for no object, or else a softmax whose last class stands for
  // none.
  bool sigmoid;
  // The key of config.json with the number of queries, each of which is listed once; null if the processor
  // lists 100 pairs of a query and a class, however many queries there are.
  const char* queries;
  // The number of detections listed if config.json lacks that key.
  int64_t listed;
};

constexpr std::array<KnownDetector, 12> kDetectors = {{{"Detr", false, "num_queries", 100},
                                                       {"TableTransformer", false, "num_queries", 100},
                                                       {"Yolos", false, "num_detection_tokens", 100},
                                                       {"ConditionalDetr", true, nullptr, 100},
                                                       {"DabDetr", true, nullptr, 100},
                                                       {"DeformableDetr", true, nullptr, 100},
                                                       {"LwDetr", true, nullptr, 100},
                                                       {"DFine", true, "num_queries", 300},
                                                       {"RTDetr", true, "num_queries", 300},
                                                       {"RTDetrV2", true, "num_queries", 300},
                                                       {"RtDetr", true, "num_queries", 300},
                                                       {"RtDetrV2", true, "num_queries", 300}}};

const KnownDetector& DetectorOf(const std::string& architecture) {
  const auto* const found =
      std::find_if(kDetectors.begin(), kDetectors.end(), [&](const KnownDetector& known) {
        return architecture == std::string(known.name) + "ForObjectDetection";
      });
  if (found != kDetectors.end()) return *found;
  Fail("config.json: the architecture is " + Quote(architecture) +
       ", and it is not known whether its scores are sigmoids or a softmax; write a saccade.json with "
       "head.activation");
}

int64_t MaxDetectionsOf(const KnownDetector& detector, const JsonValue& config) {
  const JsonValue* queries = detector.queries == nullptr ? nullptr : config.Find(detector.queries);
  if (queries == nullptr) return detector.listed;
  const double count = queries->number;
  if (queries->kind != Kind::kNumber || !(count >= 1) || count != std::floor(count))
    Fail("config.json: " + std::string(detector.queries) + " is no number of queries; expected 1 or more");
  return static_cast<int64_t>(std::min(count, static_cast<double>(kMaxDetectionsKept)));
}

std::string ArchitectureOf(const JsonValue& config) {
  const JsonValue* names = config.Find("architectures");
  const bool one = names != nullptr && names->kind == Kind::kList && names->items.size() == 1 &&
                   names->items[0].kind == Kind::kText;
  if (!one) Fail("config.json: architectures is not a list of one name");
  return names->items[0].text;
}

// "id2label": {"0": "cat", "1": "dog"}; every number from 0 has to be there. Bounded as the labels of a
// saccade.json, because answers and pages repeat them.
std::vector<std::string> LabelsOf(const JsonValue& config) {
  const JsonValue* names = config.Find("id2label");
  std::vector<std::string> labels;
  if (names == nullptr || names->kind != Kind::kObject) return labels;
  if (static_cast<int64_t>(names->members.size()) > kMaxLabelCount)
    Fail("config.json: id2label has " + std::to_string(names->members.size()) + " names, expected at most " +
         std::to_string(kMaxLabelCount));
  std::map<std::string_view, const JsonValue*> by_number;
  for (const auto& [number, label] : names->members) by_number.emplace(number, &label);
  for (size_t i = 0; i < names->members.size(); ++i) {
    const auto found = by_number.find(std::to_string(i));
    if (found == by_number.end() || found->second->kind != Kind::kText)
      Fail("config.json: id2label has " + std::to_string(names->members.size()) + " names, but none for " +
           std::to_string(i));
    const std::string& label = found->second->text;
    if (label.empty() || label.size() > kMaxLabelBytes)
      Fail("config.json: id2label has a name of " + std::to_string(label.size()) + " bytes for " +
           std::to_string(i) + ", expected 1 to " + std::to_string(kMaxLabelBytes));
    labels.push_back(label);
  }
  return labels;
}

// As transformers' own pipeline has it: the softmax of a single class would always be 1.
ScoreActivation ActivationOfClasses(const JsonValue& config, size_t labels) {
  const JsonValue* problem = config.Find("problem_type");
  const std::string text = problem == nullptr ? "" : problem->text;
  if (text == "regression")
    Fail(
        "config.json: problem_type is 'regression', whose outputs are no classes; serve the network as a "
        "program that takes tensors");
  return text == "multi_label_classification" || labels == 1 ? ScoreActivation::kSigmoid
                                                             : ScoreActivation::kSoftmax;
}

}  // namespace

PictureProgram ReadHuggingFace(std::string_view config_text, std::string_view processor_text) {
  const JsonValue config = Named("config.json", [&] { return ParseJsonTree(config_text); });
  const JsonValue processor =
      Named("preprocessor_config.json", [&] { return ParseJsonTree(processor_text); });
  if (config.kind != Kind::kObject || processor.kind != Kind::kObject)
    Fail("config.json and preprocessor_config.json have to hold an object each");
  const std::string architecture = ArchitectureOf(config);
  const auto& heads = KnownHeads();
  const auto found = std::find_if(heads.begin(), heads.end(),
                                  [&](const KnownHead& head) { return architecture.ends_with(head.ending); });
  if (found == heads.end())
    Fail("config.json: the architecture is " + Quote(architecture) +
         ", whose head is not known; expected one that ends in "
         "ForImageClassification, ForObjectDetection, ForSemanticSegmentation, ForDepthEstimation or Model, "
         "or "
         "write a saccade.json");
  PictureProgram program{
      .input = Named("preprocessor_config.json", [&] { return ReadPreprocessorConfig(processor); })};
  const ImageInput& input = program.input;
  if (input.fit == Fit::kCropCentre && found->kind != HeadKind::kClasses &&
      found->kind != HeadKind::kEmbedding)
    Fail(
        "preprocessor_config.json: the pictures' centre is cut out, but the answers of " +
        Quote(architecture) +
        " have positions in the whole picture; expected do_center_crop false (of a ConvNextImageProcessor: a "
        "shortest_edge of at least 384), or write a saccade.json");
  const bool fixed = IsFixedSize(input);
  program.pictures = {.name = "pixel_values",
                      .dims = {3, fixed ? input.height : -1, fixed ? input.width : -1}};
  program.head.kind = found->kind;
  program.roles = found->roles;
  for (const Role role : program.roles) program.outputs.push_back({.name = OutputName(role), .dims = {-1}});
  // As the processors' own post_process_depth_estimation has it.
  if (found->kind == HeadKind::kDepth) program.head.filter = Interpolation::kBicubic;
  if (found->kind == HeadKind::kSets) {
    const KnownDetector& detector = DetectorOf(architecture);
    program.head.activation = detector.sigmoid ? ScoreActivation::kSigmoid : ScoreActivation::kSoftmax;
    program.head.no_object = !detector.sigmoid;
    program.head.max_detections = MaxDetectionsOf(detector, config);
    program.head.format = BoxFormat::kCentre;
    program.head.normalized = true;
    program.head.score_threshold = 0.05F;
  }
  const bool has_classes = found->kind != HeadKind::kEmbedding && found->kind != HeadKind::kDepth;
  if (has_classes) program.labels = LabelsOf(config);
  if (found->kind == HeadKind::kClasses)
    program.head.activation = ActivationOfClasses(config, program.labels.size());
  return program;
}

}  // namespace saccade::models
