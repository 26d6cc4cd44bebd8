// Shadow versions, and what follows their promotion.
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/catalog/catalog.h"
#include "server/catalog/testing/catalog_fixture.h"
#include "server/catalog/testing/identity_config.h"
#include "server/repository/testing/test_repository.h"
#include "server/shadow/shadow.h"

namespace saccade::server {
namespace {

// Version 2 is promoted after one request that agrees.
constexpr char kPromote[] =
    "parameters { key: \"promote\" value { string_value: \"agreement >= 0.5 after 1 requests\" } }";

class CatalogPromotionsTest : public CatalogTest {
 protected:
  // Compares a request of model "m" with its shadow version, and returns once that was promoted. Its rule
  // wants one request.
  std::shared_ptr<Shadow> PromoteSecondVersion() {
    EXPECT_EQ(Served("m"), 1);
    std::shared_ptr<Shadow> trial = (*catalog_->FindReady("m", 1))->shadow();
    EXPECT_NE(trial, nullptr);
    if (trial == nullptr) return trial;
    const ComparedAnswer answer = {.results = {models::Classification{.logits = {0, 1}}}, .outputs = {}};
    trial->EndAnswered({.shadow = (*catalog_->FindReady("m", 2))->identity()}, answer, answer, {},
                       clock_.Now());
    Eventually([&] {
      catalog_->Sweep();
      return Served("m") == 2;
    });
    return trial;
  }
};

TEST_F(CatalogPromotionsTest, AShadowVersionAnswersOnlyWhoNamesIt) {
  Write("m", 1);
  Write("m", 2, kShadow);
  ASSERT_TRUE(Start(ModelControl::kExplicit, {"m"}).ok());
  EXPECT_EQ(Served("m"), 1);
  EXPECT_EQ(Served("m", 2), 2);
  const auto primary = catalog_->FindReady("m", 0);
  ASSERT_TRUE(primary.ok());
  ASSERT_NE((*primary)->shadow(), nullptr);
  EXPECT_EQ((*primary)->shadow()->rule().version, 2);
  EXPECT_EQ((*(*primary)->FindShadow())->version(), 2);
  EXPECT_EQ((*catalog_->FindReady("m", 2))->shadow(), nullptr);
  // Without the parameter it is a version like others.
  Write("m", 2, "version_policy { all { } }");
  ASSERT_TRUE(Load("m").ok());
  EXPECT_EQ(Served("m"), 2);
  EXPECT_EQ((*catalog_->FindReady("m", 1))->shadow(), nullptr);
}

TEST_F(CatalogPromotionsTest, AfterAPromotionNewFilesOfTheShadowVersionAreTriedAnew) {
  Write("m", 1);
  Write("m", 2, absl::StrCat(kShadow, kPromote));
  ASSERT_TRUE(Start(ModelControl::kPoll).ok());
  const std::shared_ptr<Shadow> trial = PromoteSecondVersion();
  ASSERT_NE(trial, nullptr);
  EXPECT_FALSE(trial->Wants(/*waiting=*/false));
  repository_.Write("m/2/weights.safetensors", "new");
  Eventually([&] { return trial->Wants(/*waiting=*/false); });
  EXPECT_EQ((*catalog_->FindReady("m", 1))->shadow(), trial) << "only the shadow version was loaded again";
  Eventually([&] { return Served("m") == 1; });
}

TEST_F(CatalogPromotionsTest, NewFilesOfAShadowVersionThatWasPromotedBeforeTheRestartAreTriedAnew) {
  const TestRepository state;
  const CatalogOptions options = {.repositories = {repository_.string()},
                                  .control = ModelControl::kPoll,
                                  .cores = 2,
                                  .state_folder = state.string()};
  Write("m", 1);
  Write("m", 2, absl::StrCat(kShadow, kPromote));
  ASSERT_TRUE(Start(options).ok());
  ASSERT_NE(PromoteSecondVersion(), nullptr);
  catalog_.reset();
  ASSERT_TRUE(Start(options).ok());
  ASSERT_EQ(Served("m"), 2);
  EXPECT_EQ((*catalog_->FindReady("m", 1))->shadow(), nullptr);
  repository_.Write("m/2/weights.safetensors", "new");
  Eventually([&] { return Served("m") == 1; });
  const auto replaced = *catalog_->FindReady("m", 1);
  ASSERT_NE(replaced->shadow(), nullptr);
  EXPECT_TRUE(replaced->shadow()->Wants(/*waiting=*/false));
  EXPECT_TRUE(replaced->FindShadow().ok());
  EXPECT_NE(PromoteSecondVersion(), nullptr);
}

// Its earlier files would compute the copies, and not only on idle cores.
TEST_F(CatalogPromotionsTest, APromotedVersionWhoseNewFilesCannotBeLoadedComputesNoCopies) {
  Write("m", 1);
  const std::string config = absl::StrCat(kShadow, kPromote);
  Write("m", 2, config);
  ASSERT_TRUE(Start(ModelControl::kPoll).ok());
  ASSERT_NE(PromoteSecondVersion(), nullptr);
  // Both versions are to be loaded again.
  std::filesystem::remove(repository_.path() / "m/2/weights.safetensors");
  repository_.Write("m/2/nothing", "");
  repository_.Write("m/config.pbtxt", absl::StrCat(kIdentity, config, "# changed\n"));
  const auto shadow_of_first = [&] { return (*catalog_->FindReady("m", 1))->shadow(); };
  const std::shared_ptr<Shadow> trial = shadow_of_first();
  Eventually([&] { return shadow_of_first() != trial; });
  ASSERT_NE(shadow_of_first(), nullptr);
  EXPECT_EQ(Served("m"), 2);
  EXPECT_EQ((*catalog_->FindReady("m", 1))->FindShadow().status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(CatalogPromotionsTest, AShadowVersionDoesNotStandInForAVersionThatCannotBeLoaded) {
  Write("m", 2, kShadow);
  repository_.Write("m/1/nothing", "");
  EXPECT_FALSE(Start(ModelControl::kExplicit, {"m"}).ok());
  EXPECT_EQ(Served("m"), 0);
  EXPECT_EQ(Served("m", 2), 2);
}

}  // namespace
}  // namespace saccade::server
