// Prints docs/fidelity.md's tables of parameters and multiply-adds: published counts beside those of the
// networks here, computed from the tables that are served, and published figures of operators that do not
// come out. fidelity_doc_test.py compares the page with this output.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "models/api/registry.h"
#include "models/tools/operator_figures.h"

namespace saccade::models {
namespace {

constexpr double kNone = -1;

// The counts of one network. kNone stands for a count that the paper does not have.
struct Row {
  const char* architecture;
  Options options;
  const char* row;  // name in the paper
  double parameters = kNone;
  double multiply_adds = kNone;
  bool every_parameter = false;  // parameters include biases and batch norms
  int per_multiply_add = 1;      // 2: multiplications and additions are counted separately
  const char* remark = "";
  double expected_parameters = kNone;  // of another source, which the remark names
};

// SANet's and KANet's papers count convolutions, transforms and the classifier's matrix.
Row Mobile(const char* architecture, const Options& options, const char* row, double parameters,
           double multiply_adds, const char* remark = "") {
  return {.architecture = architecture,
          .options = options,
          .row = row,
          .parameters = parameters,
          .multiply_adds = multiply_adds,
          .remark = remark};
}

Row ExpAtt(const char* architecture, const Options& options, const char* row, double parameters,
           double multiply_adds, const char* remark = "") {
  Row counted = Mobile(architecture, options, row, parameters, multiply_adds, remark);
  counted.every_parameter = true;
  return counted;
}

Row Gsa(const char* architecture, const Options& options, const char* row, double parameters,
        double multiply_adds) {
  Row counted = ExpAtt(architecture, options, row, parameters, multiply_adds);
  counted.per_multiply_add = 2;
  return counted;
}

// A network whose paper gives no counts.
Row Unpublished(const char* architecture, const Options& options, const char* row, const char* remark,
                double expected_parameters = kNone) {
  return {.architecture = architecture,
          .options = options,
          .row = row,
          .every_parameter = true,
          .remark = remark,
          .expected_parameters = expected_parameters};
}

const std::vector<Row>& Rows() {
  const Options none = {{"attention", "none"}};
  const Options cifar = {{"form", "cifar"}, {"classes", "100"}};
  const Options plain_cifar = {{"form", "cifar"}, {"classes", "100"}, {"attention", "none"}};
  const Options unshared_cifar = {{"form", "cifar"}, {"classes", "100"}, {"shared_map", "false"}};
  constexpr auto kNoWidths = "of its patches; the paper gives no widths";
  static const std::vector<Row> rows = {
      Mobile("sanet", {}, "SANet", 3'449'408, 288e6,
             "the paper's rules give 289.9 M; where its 288 M comes from is not known"),
      Mobile("sanet", {{"similarity", "ones"}}, "SANet w/o params", 3'448'448, kNone),
      Mobile("sanet", none, "SANet w/o SAO", 3.44e6, kNone,
             "the text replaces AttnModule by BaseModule, which has fewer weights; the paper prints SANet's "
             "number"),
      Mobile("attnnet", {}, "AttnNet", 3.44e6, 365e6),
      Mobile("attnnet_pool", {}, "AttnNet+Pool", 3.44e6, 300e6),
      Mobile("attnnet_1n", {}, "AttnNet 1/N", 3.44e6, 312e6, "one head, as its count implies"),
      Mobile(
          "sanet", {{"attention", "se"}}, "SENet", 3.44e6, 294e6,
          "blocks that halve the channels, as its parameters imply; the paper does not say where they are"),
      Mobile("kanet_kv", {}, "KANet KV", 3.44e6, 288e6),
      Mobile("kanet_qkv", {}, "KANet QKV", 3.44e6, 281e6),
      Mobile(
          "kanet_kv", none, "KANet w/o KAO", 3.46e6, 298e6,
          "all AttnSkipModules are BaseModules, as the paper says; where its 298 M comes from is not known"),
      Mobile("mobilenetv2", {}, "MobileNetV2", 3.47e6, 300e6),
      Mobile("mobilenetv2_kao", {}, "MobileNetV2+KAO", 3.46e6, 298e6),
      Mobile("mobilenetv2_sao", {}, "MobileNetV2+SAO", 3.47e6, kNone,
             "the paper rounds up, or attends elsewhere: it does not say where"),
      ExpAtt("expatt_resnet34", none, "ResNet34", 21.8e6, 3.6e9, "torchvision states 3.664 G"),
      ExpAtt("expatt_resnet34", {}, "ExpAtt-ResNet34", 17.3e6, 3.1e9),
      ExpAtt("expatt_resnet50", none, "ResNet50", 25.6e6, 3.8e9,
             "torchvision states 4.089 G; in the paper attention adds 0.2 G, here it saves 0.13 G"),
      ExpAtt("expatt_resnet50", {}, "ExpAtt-ResNet50", 24.5e6, 4.0e9),
      ExpAtt("expatt_resnet101", none, "ResNet101", 44.5e6, 7.6e9, "torchvision states 7.801 G"),
      ExpAtt("expatt_resnet101", {}, "ExpAtt-ResNet101", 42.7e6, 7.6e9,
             "convolutions and transforms alone; where the paper's 7.6 G comes from is not known"),
      ExpAtt("expatt_resnet152", none, "ResNet152", 60.2e6, 11.3e9, "torchvision states 11.514 G"),
      ExpAtt("expatt_resnet152", {}, "ExpAtt-ResNet152", 57.6e6, 11.1e9),
      ExpAtt("expatt_resnet50", plain_cifar, "ResNet50, CIFAR-100", 23.7e6, 1.31e9),
      ExpAtt("expatt_resnet50", cifar, "ExpAtt-ResNet50, CIFAR-100", 22.7e6, 1.25e9),
      Unpublished(
          "expatt_resnet50", unshared_cifar, "a map for each head, CIFAR-100",
          "the paper gives its accuracy alone; so it does without \"+1\", which has the row above's counts"),
      ExpAtt("expatt_mobilenetv2", none, "MobileNetV2 in ExpAtt's paper", 3.5e6, 0.32e9,
             "1000 classes, though its data set has 200; where the paper's 0.32 G comes from is not known"),
      ExpAtt("expatt_mobilenetv2", {}, "ExpAtt-MobileNetV2", 3.51e6, 0.32e9,
             "the same; cut off, not rounded"),
      Gsa("gsa_resnet38", none, "ResNet-38, convolutions", 19.6e6, 6.4e9),
      Gsa("gsa_resnet38", {}, "GSA-ResNet-38", 14.2e6, 5.9e9),
      Gsa("gsa_resnet50", none, "ResNet-50, convolutions", 25.6e6, 8.2e9),
      Gsa("gsa_resnet50", {}, "GSA-ResNet-50", 18.1e6, 7.2e9),
      Gsa("gsa_resnet101", none, "ResNet-101, convolutions", 44.5e6, 15.6e9),
      Gsa("gsa_resnet101", {}, "GSA-ResNet-101", 30.4e6, 12.2e9),
      Gsa("gsa_resnet50", {{"expansion", "2"}, {"width", "1.125"}}, "GSA on M-ResNet-50", 12.7e6, 6.0e9),
      Gsa("gsa_resnet50", {{"content", "axial"}}, "axial, content and position", 18.1e6, 7.3e9),
      Gsa("gsa_resnet50", {{"content", "none"}}, "axial, position alone", 16.8e6, 6.4e9),
      Unpublished("deeplabv2_kao_kv", {{"head", "aspp"}}, "DeepLabV2",
                  "expected: the usual ports of DeepLabV2 to PyTorch", 44'048'532),
      Unpublished("ea_psmnet", none, "PSMNet", "expected: the published network; its paper says 5.2 M",
                  5'224'768),
      Unpublished("ea_psmnet", {}, "EA-PSMNet", "expected: PSMNet's and 2,112 for the attention", 5'226'880),
      Unpublished("ea_rc3d", none, "R-C3D", "for 768 frames"),
      Unpublished("ea_rc3d", {}, "EA R-C3D", "for 768 frames"),
      Unpublished("unet3d_sao_denoise", {}, "U-Net+SAO, denoising", kNoWidths),
      Unpublished("unet3d_sao_denoise", {{"attention", "attn"}}, "U-Net+Attn, denoising", kNoWidths),
      Unpublished("unet3d_sao_denoise", none, "U-Net, denoising", kNoWidths),
      Unpublished("unet3d_sao_project", {}, "U-Net+SAO, projection", kNoWidths),
      Unpublished("unet3d_sao_project", {{"attention", "attn"}}, "U-Net+Attn, projection", kNoWidths),
  };
  return rows;
}

std::string Grouped(int64_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string Text(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

// Prints in the papers' precision: all digits, or hundredths of a million.
std::string ParametersText(double value) {
  if (value < 0) return "-";
  if (std::fmod(value, 1e4) != 0) return Grouped(std::llround(value));
  return Text("%.2f M", value / 1e6);
}

std::string Operations(double value) {
  if (value < 0) return "-";
  return value < 1e9 && value != 0.32e9 ? Text("%.2f M", value / 1e6) : Text("%.3f G", value / 1e9);
}

std::string Difference(double here, double published) {
  if (published < 0) return "-";
  const double percent = 100 * (here / published - 1);
  return std::fabs(percent) < 0.005 ? "0" : Text("%+.2f %%", percent);
}

std::string OptionsText(const Options& options) {
  std::string text;
  for (const auto& [name, value] : options) {
    if (!text.empty()) text += ", ";
    text += name;
    text += "=";
    text += value;
  }
  return text;
}

void PrintCounts() {
  std::printf(
      "| network | options | the paper's row | parameters here | published | expected | | multiply-adds here "
      "| "
      "published | | |\n");
  std::printf("|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const Row& row : Rows()) {
    const Counts counts = Count(row.architecture, row.options);
    const int64_t parameters = row.every_parameter ? counts.AllParameters() : counts.Parameters();
    const double operations = static_cast<double>(row.per_multiply_add * counts.Madds());
    const double compared = row.parameters < 0 ? row.expected_parameters : row.parameters;
    std::printf("| `%s` | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", row.architecture,
                OptionsText(row.options).c_str(), row.row, Grouped(parameters).c_str(),
                ParametersText(row.parameters).c_str(), ParametersText(row.expected_parameters).c_str(),
                Difference(static_cast<double>(parameters), compared).c_str(), Operations(operations).c_str(),
                Operations(row.multiply_adds).c_str(), Difference(operations, row.multiply_adds).c_str(),
                row.remark);
  }
}

// What attention adds to a network, as a share of the network without it.
void PrintAdditions() {
  const Counts plain = Count("ea_mask_rcnn_r50", {{"attention", "none"}});
  const Counts attentive = Count("ea_mask_rcnn_r50", {});
  const auto added = [](int64_t with, int64_t without) {
    return Difference(static_cast<double>(with), static_cast<double>(without));
  };
  std::printf("\n| network | attention adds | here | published |\n|---|---|---|---|\n");
  std::printf("| `ea_mask_rcnn_r50` | parameters | %s | +2.9 %% |\n",
              added(attentive.AllParameters(), plain.AllParameters()).c_str());
  std::printf("| `ea_mask_rcnn_r50` | multiply-adds | %s | +5.3 %% |\n",
              added(attentive.Madds(), plain.Madds()).c_str());
}

}  // namespace
}  // namespace saccade::models

int main() {
  try {
    saccade::models::PrintCounts();
    saccade::models::PrintAdditions();
    saccade::models::PrintDifferingOperators();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "saccade_fidelity: %s\n", error.what());
    return 1;
  }
}
