#include "models/networks/nearest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

#include "kernels/common/long_form.h"
#include "models/api/registry.h"
#include "models/networks/testing/network_files.h"

namespace saccade::models {
namespace {

using testing::FileOf;
using ::testing::IsEmpty;
using testing::Rename;
using testing::SortByName;

using Entries = std::vector<TensorEntry>;

// All but the identity, which has no tensors.
std::vector<std::string> Networks() {
  std::vector<std::string> names = Architectures();
  std::erase(names, "identity");
  return names;
}

// All in the long form of the tests; otherwise one of each family, of which each has other tensors.
std::vector<std::string> NetworksOfEachFamily() {
  if (kernels::IsLongForm()) return Networks();
  return {"deeplabv2_kao_kv",   "ea_mask_rcnn_r50", "ea_psmnet", "ea_rc3d",
          "expatt_mobilenetv2", "gsa_resnet38",     "kanet_kv",  "unet3d_sao_denoise"};
}

bool HasClasses(const std::string& architecture) {
  return Describe(architecture, {}).options.contains("classes");
}

// Whether the network is named, alone or among those that are alike.
::testing::AssertionResult Names(const NearestNetwork& nearest, const std::string& architecture) {
  if (nearest.architecture == architecture) return ::testing::AssertionSuccess();
  if (std::find(nearest.alike.begin(), nearest.alike.end(), architecture) != nearest.alike.end())
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << architecture << " is taken for " << nearest.architecture << " or "
         << ::testing::PrintToString(nearest.alike) << " (" << nearest.fit.Score() << ")";
}

std::string ModuleOf(const std::string& name) { return name.substr(0, name.rfind('.') + 1); }

// The part of a name before its first dot.
std::string FirstPart(const std::string& name) { return name.substr(0, name.find('.')); }

// Networks that have the same tensors: attention without weights, or weights that both use differently.
TEST(Nearest, EveryNetworkIsRecognisedExactly) {
  std::set<std::string> twins;
  for (const std::string& architecture : Networks()) {
    const NearestNetwork nearest = Nearest(FileOf(architecture));
    EXPECT_TRUE(Names(nearest, architecture));
    EXPECT_TRUE(nearest.fit.exact()) << architecture;
    EXPECT_THAT(nearest.options, IsEmpty()) << architecture;
    if (nearest.alike.empty()) {
      EXPECT_EQ(nearest.architecture, architecture);
    } else {
      twins.insert(architecture);
    }
  }
  EXPECT_EQ(twins, (std::set<std::string>{"attnnet", "attnnet_pool", "deeplabv2_kao_kv", "deeplabv2_kao_qkv",
                                          "kanet_kv", "kanet_qkv"}));
}

TEST(Nearest, ClassesAreCounted) {
  for (const std::string& architecture : NetworksOfEachFamily()) {
    if (!HasClasses(architecture)) continue;
    for (const int64_t classes : {2, 200}) {
      Entries file = FileOf(architecture, {{"classes", std::to_string(classes)}});
      if (classes == 2) SortByName(file);
      const NearestNetwork nearest = Nearest(file);
      EXPECT_TRUE(Names(nearest, architecture));
      EXPECT_TRUE(nearest.fit.exact()) << architecture;
      EXPECT_EQ(nearest.options, (Options{{"classes", std::to_string(classes)}})) << architecture;
    }
  }
}

TEST(Nearest, WidthsAndBlocksAreFound) {
  for (const std::string& architecture : NetworksOfEachFamily()) {
    const Options known = Describe(architecture, {}).options;
    if (!known.contains("width")) continue;
    Options options = {{"width", "0.25"}};
    if (HasClasses(architecture)) options["classes"] = "5";
    const NearestNetwork nearest = Nearest(FileOf(architecture, options));
    EXPECT_TRUE(Names(nearest, architecture));
    EXPECT_TRUE(nearest.fit.exact()) << architecture;
    if (nearest.architecture == architecture) {
      EXPECT_EQ(nearest.options, options) << architecture;
    }
  }
  const NearestNetwork deep = Nearest(FileOf("resnet50", {{"blocks", "3,5,6,3"}, {"classes", "9"}}));
  EXPECT_EQ(deep.architecture, "resnet50");
  EXPECT_THAT(deep.alike, IsEmpty());
  EXPECT_EQ(deep.options, (Options{{"blocks", "3,5,6,3"}, {"classes", "9"}}));
}

TEST(Nearest, PrefixesAreFound) {
  for (const std::string& architecture : NetworksOfEachFamily()) {
    const std::string prefix = architecture.size() % 2 == 0 ? "model." : "student.net.";
    Entries file = FileOf(architecture);
    Rename(file, "", prefix);
    file.push_back({.name = "student.loss.weight", .shape = {3}, .strides = {}});
    const NearestNetwork nearest = Nearest(file);
    EXPECT_TRUE(Names(nearest, architecture)) << prefix;
    EXPECT_EQ(nearest.prefix, prefix) << architecture;
    EXPECT_EQ(nearest.fit.surplus.size(), 1U) << architecture;
  }
}

// The last layer has another name, and another number of classes if there are classes.
TEST(Nearest, ARenamedHeadIsPaired) {
  for (const std::string& architecture : NetworksOfEachFamily()) {
    Entries file = FileOf(architecture, HasClasses(architecture) ? Options{{"classes", "13"}} : Options{});
    const std::string head = ModuleOf(file.back().name);
    const auto renamed = static_cast<size_t>(std::count_if(
        file.begin(), file.end(), [&](const TensorEntry& entry) { return entry.name.starts_with(head); }));
    Rename(file, head, "another.");
    if (architecture.size() % 2 == 0) SortByName(file);
    const NearestNetwork nearest = Nearest(file);
    EXPECT_TRUE(Names(nearest, architecture)) << head;
    EXPECT_EQ(nearest.fit.renamed.size(), renamed) << architecture;
    EXPECT_THAT(nearest.fit.missing, IsEmpty()) << architecture;
    EXPECT_THAT(nearest.fit.surplus, IsEmpty()) << architecture;
    for (const RenamedTensor& tensor : nearest.fit.renamed) {
      EXPECT_EQ("another." + tensor.expected.substr(head.size()), tensor.found);
    }
  }
}

// As another library names the same network: no name is left, but order and shapes are.
TEST(Nearest, NetworksOfWhichAllNamesDifferArePairedByShapeAndOrder) {
  for (const std::string& architecture : NetworksOfEachFamily()) {
    Entries file = FileOf(architecture);
    std::map<std::string, std::string> modules;
    for (TensorEntry& entry : file) {
      const std::string module = ModuleOf(entry.name);
      const auto [at, added] = modules.emplace(module, "m" + std::to_string(modules.size()) + ".");
      entry.name = at->second + entry.name.substr(module.size());
    }
    const Entries original = FileOf(architecture);
    const NearestNetwork nearest = Nearest(file);
    EXPECT_TRUE(Names(nearest, architecture));
    ASSERT_EQ(nearest.fit.renamed.size(), file.size()) << architecture;
    for (size_t i = 0; i < file.size(); ++i) {
      EXPECT_EQ(nearest.fit.renamed[i].found, file[i].name) << architecture;
    }
  }
}

// One of the outer modules has another name, as in a torch.nn.Sequential of a network's children.
TEST(Nearest, RenamedPartsArePaired) {
  for (const std::string& architecture : NetworksOfEachFamily()) {
    std::set<std::string> parts;
    for (const TensorEntry& entry : FileOf(architecture)) parts.insert(FirstPart(entry.name) + ".");
    for (const std::string& part : {*parts.begin(), *parts.rbegin()}) {
      Entries file = FileOf(architecture);
      Rename(file, part, "7.");
      SortByName(file);
      const NearestNetwork nearest = Nearest(file);
      EXPECT_TRUE(Names(nearest, architecture)) << part;
      EXPECT_TRUE(nearest.fit.exact() || !nearest.prefix.empty() || !nearest.fit.renamed.empty())
          << architecture << " " << part;
      EXPECT_THAT(nearest.fit.missing, IsEmpty()) << architecture << " " << part;
    }
  }
}

TEST(Nearest, MissingAndSurplusTensorsDoNotMislead) {
  std::mt19937 random(1);
  for (const std::string& architecture : NetworksOfEachFamily()) {
    for (int round = 0; round < 2; ++round) {
      Entries file = FileOf(architecture);
      std::set<std::string> missing;
      const size_t count = 1 + 4 * static_cast<size_t>(round);
      for (size_t i = 0; i < count; ++i) {
        const size_t at = random() % file.size();
        missing.insert(file[at].name);
        file.erase(file.begin() + static_cast<std::ptrdiff_t>(at));
      }
      for (size_t i = 0; i < count; ++i) {
        file.push_back(
            {.name = "projection." + std::to_string(i) + ".weight", .shape = {61, 3}, .strides = {}});
      }
      const NearestNetwork nearest = Nearest(file);
      EXPECT_TRUE(Names(nearest, architecture)) << ::testing::PrintToString(missing);
      if (nearest.architecture != architecture) continue;
      EXPECT_EQ(nearest.fit.surplus.size(), count) << architecture;
      std::set<std::string> found;
      for (const TensorSpec& spec : nearest.fit.missing) found.insert(spec.name);
      EXPECT_EQ(found, missing) << architecture;
    }
  }
}

// All at once: a prefix, another head, and tensors that are missing and surplus.
TEST(Nearest, SeveralDifferencesAtOnce) {
  for (const std::string& architecture : NetworksOfEachFamily()) {
    Entries file = FileOf(architecture, HasClasses(architecture) ? Options{{"classes", "6"}} : Options{});
    Rename(file, ModuleOf(file.back().name), "head_of_mine.");
    file.erase(file.begin() + 2);
    Rename(file, "", "encoder.");
    file.push_back({.name = "temperature", .shape = {}, .strides = {}});
    SortByName(file);
    const NearestNetwork nearest = Nearest(file);
    EXPECT_TRUE(Names(nearest, architecture));
    EXPECT_EQ(nearest.prefix, "encoder.") << architecture;
  }
}

TEST(Nearest, WhatIsNoNetworkIsNearToNone) {
  const Entries mlp = {{.name = "0.weight", .shape = {128, 784}, .strides = {}},
                       {.name = "0.bias", .shape = {128}, .strides = {}},
                       {.name = "2.weight", .shape = {10, 128}, .strides = {}},
                       {.name = "2.bias", .shape = {10}, .strides = {}}};
  EXPECT_EQ(Nearest(mlp).architecture, "");
  EXPECT_EQ(Nearest({}).architecture, "");
  Entries transformer;
  for (int block = 0; block < 12; ++block) {
    const std::string name = "blocks." + std::to_string(block) + ".";
    for (const char* norm : {"norm1.", "norm2."}) {
      transformer.push_back({.name = name + norm + "weight", .shape = {192}, .strides = {}});
      transformer.push_back({.name = name + norm + "bias", .shape = {192}, .strides = {}});
    }
    transformer.push_back({.name = name + "attn.qkv.weight", .shape = {576, 192}, .strides = {}});
    transformer.push_back({.name = name + "mlp.fc1.weight", .shape = {768, 192}, .strides = {}});
  }
  transformer.push_back({.name = "head.weight", .shape = {1000, 192}, .strides = {}});
  EXPECT_EQ(Nearest(transformer).architecture, "");
}

TEST(Nearest, FilesOfManyTensorsAreNotCompared) {
  Entries file = FileOf("resnet18");
  for (int i = 0; i < 20'000; ++i) {
    file.push_back({.name = "layer1." + std::to_string(i) + ".weight", .shape = {1}, .strides = {}});
  }
  const NearestNetwork nearest = Nearest(file);
  EXPECT_EQ(nearest.architecture, "");
  EXPECT_EQ(nearest.tensors, file.size());
}

TEST(Nearest, TheConfiguredNetworkWinsAgainstItsTwins) {
  for (const std::string architecture : {"kanet_kv", "kanet_qkv", "resnet50"}) {
    Entries file = FileOf(architecture, {{"classes", "4"}});
    file.pop_back();
    const NearestNetwork nearest = Nearest(file, architecture, {{"classes", "4"}});
    EXPECT_EQ(nearest.architecture, architecture);
    EXPECT_EQ(nearest.fit.missing.size(), 1U);
  }
}

TEST(Nearest, BatchCountersAreNoTensorsOfTheNetwork) {
  Entries file = FileOf("resnet18");
  file.push_back({.name = "bn1.num_batches_tracked", .type = ElementType::kI64, .shape = {}, .strides = {}});
  EXPECT_TRUE(Nearest(file).fit.exact());
}

}  // namespace
}  // namespace saccade::models
