// Prints docs/fidelity.md's table of parameters and multiply-adds: published counts beside those of the
// networks here, computed from the tables that are served. fidelity_doc_test.py compares the page with this
// output.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "models/api/registry.h"

namespace saccade::models {
namespace {

// A paper's published counts; -1 if the paper has none.
struct Published {
  const char* architecture;
  Options options;
  const char* row;  // name in the paper
  double parameters;
  double multiply_adds;
  bool every_parameter;  // parameters include biases and batch norms
  int per_multiply_add;  // 2: multiplications and additions are counted separately
  const char* remark;
};

const std::vector<Published>& Rows() {
  constexpr auto kNoRemark = "";
  constexpr auto kNoWidths = "of its patches; the paper gives no widths";
  static const std::vector<Published> rows = {
      {"sanet",
       {},
       "SANet",
       3'449'408,
       288e6,
       false,
       1,
       "the paper's rules give 289.9 M; where its 288 M comes from is not known"},
      {"sanet", {{"similarity", "ones"}}, "SANet w/o params", 3'448'448, -1, false, 1, kNoRemark},
      {"attnnet", {}, "AttnNet", 3.44e6, 365e6, false, 1, kNoRemark},
      {"attnnet_pool", {}, "AttnNet+Pool", 3.44e6, 300e6, false, 1, kNoRemark},
      {"attnnet_1n", {}, "AttnNet 1/N", 3.44e6, 312e6, false, 1, "one head, as its count implies"},
      {"kanet_kv", {}, "KANet KV", 3.44e6, 288e6, false, 1, kNoRemark},
      {"kanet_qkv", {}, "KANet QKV", 3.44e6, 281e6, false, 1, kNoRemark},
      {"kanet_kv",
       {{"attention", "none"}},
       "KANet w/o KAO",
       3.46e6,
       298e6,
       false,
       1,
       "the paper does not say which modules it has instead; here MobileNetV2's"},
      {"mobilenetv2", {}, "MobileNetV2", 3.47e6, 300e6, false, 1, kNoRemark},
      {"mobilenetv2_kao", {}, "MobileNetV2+KAO", 3.46e6, 298e6, false, 1, kNoRemark},
      {"mobilenetv2_sao",
       {},
       "MobileNetV2+SAO",
       3.47e6,
       -1,
       false,
       1,
       "the paper rounds up, or attends elsewhere: it does not say where"},
      {"expatt_resnet34", {}, "ExpAtt-ResNet34", 17.3e6, 3.1e9, true, 1, kNoRemark},
      {"expatt_resnet50", {}, "ExpAtt-ResNet50", 24.5e6, 4.0e9, true, 1, kNoRemark},
      {"expatt_resnet101",
       {},
       "ExpAtt-ResNet101",
       42.7e6,
       7.6e9,
       true,
       1,
       "convolutions and transforms alone; the paper's tool counts more"},
      {"expatt_resnet152", {}, "ExpAtt-ResNet152", 57.6e6, 11.1e9, true, 1, kNoRemark},
      {"expatt_resnet50",
       {{"form", "cifar"}, {"classes", "100"}},
       "ExpAtt-ResNet50, CIFAR-100",
       22.7e6,
       1.25e9,
       true,
       1,
       "convolutions and transforms alone; the paper's tool counts more"},
      {"expatt_mobilenetv2",
       {},
       "ExpAtt-MobileNetV2",
       3.51e6,
       0.32e9,
       true,
       1,
       "cut off, not rounded; 1000 classes, though its data set has 200"},
      {"gsa_resnet38", {}, "GSA-ResNet-38", 14.2e6, 5.9e9, true, 2, kNoRemark},
      {"gsa_resnet50", {}, "GSA-ResNet-50", 18.1e6, 7.2e9, true, 2, kNoRemark},
      {"gsa_resnet101", {}, "GSA-ResNet-101", 30.4e6, 12.2e9, true, 2, kNoRemark},
      {"gsa_resnet50",
       {{"content", "axial"}},
       "axial, content and position",
       18.1e6,
       7.3e9,
       true,
       2,
       kNoRemark},
      {"gsa_resnet50", {{"content", "none"}}, "axial, position alone", 16.8e6, 6.4e9, true, 2, kNoRemark},
      {"deeplabv2_kao_kv",
       {{"head", "aspp"}},
       "DeepLabV2",
       44'048'532,
       -1,
       true,
       1,
       "not in the paper; the usual ports' count"},
      {"ea_psmnet", {{"attention", "none"}}, "PSMNet", 5'224'768, -1, true, 1, "PSMNet's own paper: 5.2 M"},
      {"ea_psmnet", {}, "EA-PSMNet", 5'226'880, -1, true, 1, "not in the paper: 2,112 for the attention"},
      {"ea_rc3d", {{"attention", "none"}}, "R-C3D", -1, -1, true, 1, "not in the paper; for 768 frames"},
      {"ea_rc3d", {}, "EA R-C3D", -1, -1, true, 1, "not in the paper: 395,136 for the attention"},
      {"unet3d_sao_denoise", {}, "U-Net+SAO, denoising", -1, -1, true, 1, kNoWidths},
      {"unet3d_sao_denoise", {{"attention", "none"}}, "U-Net, denoising", -1, -1, true, 1, kNoWidths},
      {"unet3d_sao_project", {}, "U-Net+SAO, projection", -1, -1, true, 1, kNoWidths},
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
std::string PublishedParameters(double value) {
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

void Print() {
  std::printf(
      "| network | options | the paper's row | parameters here | published | | multiply-adds here | "
      "published | | |\n");
  std::printf("|---|---|---|---|---|---|---|---|---|---|\n");
  for (const Published& row : Rows()) {
    const Counts counts = Count(row.architecture, row.options);
    const int64_t parameters = row.every_parameter ? counts.AllParameters() : counts.Parameters();
    const double operations = static_cast<double>(row.per_multiply_add * counts.Madds());
    std::string options;
    for (const auto& [name, value] : row.options) {
      if (!options.empty()) options += ", ";
      options += name;
      options += "=";
      options += value;
    }
    std::printf("| `%s` | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", row.architecture, options.c_str(),
                row.row, Grouped(parameters).c_str(), PublishedParameters(row.parameters).c_str(),
                Difference(static_cast<double>(parameters), row.parameters).c_str(),
                Operations(operations).c_str(), Operations(row.multiply_adds).c_str(),
                Difference(operations, row.multiply_adds).c_str(), row.remark);
  }
}

}  // namespace
}  // namespace saccade::models

int main() {
  try {
    saccade::models::Print();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "saccade_fidelity: %s\n", error.what());
    return 1;
  }
}
