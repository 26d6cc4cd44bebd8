#include "models/networks/mobile/torchvision_names.h"

#include <gtest/gtest.h>

#include <set>

#include "models/networks/network_tensors.h"

namespace saccade::models {
namespace {

TEST(TorchvisionNames, GoBothWays) {
  std::set<std::string> names;
  for (const TensorSpec& spec : TensorsOf("mobilenet_v2", {}).expected) {
    const std::string theirs = TorchvisionName(spec.name);
    EXPECT_TRUE(theirs.starts_with("features.") || theirs.starts_with("classifier.1.")) << theirs;
    EXPECT_EQ(NameOfTorchvision(theirs), spec.name);
    EXPECT_TRUE(names.insert(theirs).second) << theirs;
  }
  EXPECT_EQ(TorchvisionName("blocks.3.depthwise.bn.running_var"), "features.4.conv.1.1.running_var");
}

TEST(TorchvisionNames, OthersAreLeftAlone) {
  for (const std::string name :
       {"", ".", "blocks.", "blocks.x.expand.conv.weight", "blocks.3.attention.w",
        "blocks.99999999999.expand.conv.weight", "stem.other", "projection.weight"}) {
    EXPECT_EQ(TorchvisionName(name), name);
  }
  for (const std::string name : {"", "features", "features.", "features.x.0.weight", "features.1"}) {
    EXPECT_EQ(NameOfTorchvision(name), name);
  }
}

}  // namespace
}  // namespace saccade::models
