#include "models/networks/mask_rcnn/table.h"

#include <array>
#include <cmath>

namespace saccade::models {
namespace {

int64_t RoundedWidth(int64_t channels, double width) {
  return static_cast<int64_t>(std::lround(static_cast<double>(channels) * width));
}

// Records the table's layers, level by level.
class Recorder {
 public:
  Recorder(const MaskRcnnTable& table, Ledger& ledger) : table_(table), ledger_(ledger) {}

  void Record() {
    const std::array<Size, 4> stages = Backbone();
    const std::vector<Size> levels = Pyramid(stages);
    ProposalHead(levels);
    BoxHead();
    MaskHead();
  }

 private:
  std::array<Size, 4> Backbone() {
    std::array<Size, 4> stages;
    Size size = RecordStem(table_.backbone, kBodyPrefix, kNominalInput, ledger_);
    for (int stage = 0; stage < 4; ++stage) {
      size = RecordStage(table_.backbone, stage, kBodyPrefix, size, ledger_);
      stages[static_cast<size_t>(stage)] = size;
      const int64_t channels = table_.backbone.Channels(stage);
      if (stage == 2) Attention(AttentionPlace::kRes3, channels, size);
      if (stage == 3) Attention(AttentionPlace::kRes4, channels, size);
    }
    return stages;
  }

  // Returns the sizes of the levels that the RPN uses.
  std::vector<Size> Pyramid(const std::array<Size, 4>& stages) {
    const Size top = kTopWindow.After(stages[3]);
    std::vector<Size> levels(stages.begin(), stages.end());
    if (table_.options.paper_pyramid) {
      Biased(kTopName, table_.backbone.Channels(3), table_.channels, 3, top, 2);
      Attention(AttentionPlace::kFpn5, table_.channels, top);
    } else {
      levels.push_back(top);
    }
    for (int level = 3; level >= 0; --level) {
      const Size size = stages[static_cast<size_t>(level)];
      Biased(LateralName(level), table_.backbone.Channels(level), table_.channels, 1, size);
      Biased(LevelName(level), table_.channels, table_.channels, 3, size);
      Attention(PyramidPlace(level), table_.channels, size);
    }
    if (!table_.options.paper_pyramid) Attention(AttentionPlace::kFpn5, table_.channels, top);
    return levels;
  }

  void ProposalHead(const std::vector<Size>& levels) {
    const int64_t channels = table_.channels;
    const auto shared = [&](const std::string& name, int64_t outputs, int64_t kernel) {
      Biased(name, channels, outputs, kernel, levels.front());
      for (size_t level = 1; level < levels.size(); ++level) {
        const Size size = levels[level];
        ledger_.Add(
            {.name = name,
             .operation = "the same on fpn" + std::to_string(level + 1) + ", " + ExtentText(SidesOf(size)),
             .madds = size.height * size.width * channels * outputs * kernel * kernel},
            {});
      }
    };
    shared("rpn.head.conv.0.0", channels, 3);
    shared("rpn.head.cls_logits", kAspectRatios, 1);
    shared("rpn.head.bbox_pred", 4 * kAspectRatios, 1);
  }

  void BoxHead() {
    const int64_t rows = table_.options.proposals;
    const int64_t width = table_.representation;
    ledger_.Linear("roi_heads.box_head.fc6", table_.channels * kBoxSide * kBoxSide, width, rows);
    ledger_.Linear("roi_heads.box_head.fc7", width, width, rows);
    ledger_.Linear("roi_heads.box_predictor.cls_score", width, table_.options.classes, rows);
    ledger_.Linear("roi_heads.box_predictor.bbox_pred", width, 4 * table_.options.classes, rows);
  }

  // Counts all classes, as the network is defined; serving computes only the detected class.
  void MaskHead() {
    const Size pooled{table_.options.detections * kMaskSide, kMaskSide};
    const Size drawn{2 * pooled.height, 2 * pooled.width};
    for (int64_t layer = 0; layer < kMaskConvolutions; ++layer) {
      Biased("roi_heads.mask_head." + std::to_string(layer) + ".0", table_.channels, table_.channels, 3,
             pooled);
    }
    ledger_.Convolution("roi_heads.mask_predictor.conv5_mask",
                        {.inputs = table_.channels,
                         .outputs = table_.channels,
                         .kernel = {2, 2},
                         .stride = 2,
                         .bias = true,
                         .transposed = true},
                        SidesOf(drawn));
    Biased("roi_heads.mask_predictor.mask_fcn_logits", table_.channels, table_.options.classes, 1, drawn);
  }

  void Biased(const std::string& name, int64_t inputs, int64_t outputs, int64_t kernel, Size output,
              int64_t stride = 1) {
    ledger_.Convolution(
        name,
        {.inputs = inputs, .outputs = outputs, .kernel = {kernel, kernel}, .stride = stride, .bias = true},
        SidesOf(output));
  }

  void Attention(AttentionPlace place, int64_t channels, Size size) {
    if (!table_.options.Attends(place)) return;
    const MaskRcnnOptions& options = table_.options;
    if (options.efficient) {
      ledger_.EfficientAttention(AttentionName(place), channels, options.key_channels, options.value_channels,
                                 /*reprojected=*/true, SidesOf(size));
    } else {
      ledger_.NonLocal(AttentionName(place), channels, options.key_channels, options.value_channels,
                       SidesOf(size));
    }
  }

  const MaskRcnnTable& table_;
  Ledger& ledger_;
};

}  // namespace

MaskRcnnTable MakeMaskRcnnTable(const std::string& architecture, const MaskRcnnOptions& options) {
  MaskRcnnTable table;
  table.options = options;
  table.backbone.blocks = options.blocks;
  table.backbone.width = RoundedWidth(64, options.width);
  table.backbone.epsilon = options.batch_norm_epsilon;
  if (options.paper_pyramid) {
    table.backbone.stem_kernel = 3;
    table.backbone.pool_kernel = 2;
  }
  if (IsResnext(architecture)) {
    // A narrow network has fewer groups of unchanged width: 4 channels in the first stage.
    table.backbone.groups = RoundedWidth(32, options.width);
    table.backbone.width_per_group = static_cast<int64_t>(std::lround(4 / options.width));
  }
  table.channels = RoundedWidth(256, options.width);
  table.representation = RoundedWidth(1024, options.width);
  return table;
}

std::string AttentionName(AttentionPlace place) {
  return std::string("backbone.attention.") + PlaceName(place);
}

std::string LateralName(int level) { return "backbone.fpn.inner_blocks." + std::to_string(level) + ".0"; }

std::string LevelName(int level) { return "backbone.fpn.layer_blocks." + std::to_string(level) + ".0"; }

AttentionPlace PyramidPlace(int level) {
  return static_cast<AttentionPlace>(static_cast<int>(AttentionPlace::kFpn1) + level);
}

void RecordMaskRcnn(const MaskRcnnTable& table, Ledger& ledger) { Recorder(table, ledger).Record(); }

}  // namespace saccade::models
