#include "server/security/scopes.h"

#include <gtest/gtest.h>

namespace saccade::server {
namespace {

TEST(ScopesTest, NamesAreRead) {
  for (const Scope scope : {Scope::kPredict, Scope::kAdmin, Scope::kMetrics})
    EXPECT_EQ(ScopeNamed(NameOf(scope)), scope);
  for (const char* none : {"", "open", "Predict", "predict "})
    EXPECT_EQ(ScopeNamed(none), std::nullopt) << none;
}

TEST(ScopesTest, CallsAreKnownByTheirWholePath) {
  EXPECT_EQ(ScopeOfCall("/saccade.v1.Vision/Predict"), Scope::kPredict);
  EXPECT_EQ(ScopeOfCall("/inference.GRPCInferenceService/RepositoryModelLoad"), Scope::kAdmin);
  EXPECT_EQ(ScopeOfCall("/grpc.health.v1.Health/Check"), Scope::kOpen);
  EXPECT_EQ(ScopeOfCall("/grpc.health.v1.Health/List"), Scope::kPredict);
  EXPECT_EQ(ScopeOfCall("/grpc.health.v1.Health/List"), Scope::kPredict);
  for (const char* none :
       {"", "/", "saccade.v1.Vision/Predict", "/saccade.v1.Vision/Predic", "/saccade.v1.Vision/Predict/",
        "/saccade.v1.Vision.Predict", "//saccade.v1.Vision/Predict", "/grpc.health.v1.Health/Reset"}) {
    EXPECT_EQ(ScopeOfCall(none), std::nullopt) << none;
  }
}

TEST(ScopesTest, RoutesAreKnownByMethodAndPath) {
  EXPECT_EQ(ScopeOfRoute("POST", "/v2/models/{model}/infer"), Scope::kPredict);
  EXPECT_EQ(ScopeOfRoute("GET", "/v2/health/ready"), Scope::kOpen);
  EXPECT_EQ(ScopeOfRoute("GET", "/metrics"), Scope::kMetrics);
  EXPECT_EQ(ScopeOfRoute("POST", "/v1/predict/{model}"), Scope::kPredict);
  EXPECT_EQ(ScopeOfRoute("GET", "/openapi.json"), Scope::kOpen);
  EXPECT_EQ(ScopeOfRoute("GET", "/v1/models/{model}/shadow"), Scope::kPredict);
  EXPECT_EQ(ScopeOfRoute("GET", "/v1/models/{model}/shadow/pictures/{number}"), Scope::kAdmin);
  EXPECT_EQ(ScopeOfRoute("GET", "/v1/predict/{model}"), std::nullopt);
  EXPECT_EQ(ScopeOfRoute("GET", "/v2/models/{model}/infer"), std::nullopt);
  EXPECT_EQ(ScopeOfRoute("POST", "/v2/health/ready"), std::nullopt);
  EXPECT_EQ(ScopeOfRoute("GET", "/v3"), std::nullopt);
}

}  // namespace
}  // namespace saccade::server
