// A catalog of models that answer with their input, on virtual time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/catalog/catalog.h"
#include "server/catalog/testing/identity_config.h"
#include "server/catalog/testing/pending.h"
#include "server/core/clock.h"
#include "server/core/fake_clock.h"
#include "server/metrics/metrics.h"
#include "server/repository/testing/test_repository.h"

namespace saccade::server {

// All versions serve, and version 2 is a shadow version.
inline constexpr char kShadow[] =
    "version_policy { all { } } parameters { key: \"shadow\" value { string_value: \"version=2,share=1\" } "
    "} ";

class CatalogTest : public ::testing::Test {
 protected:
  void Write(absl::string_view model, int version, absl::string_view config = "") const {
    WriteTo(repository_, model, version, config);
  }
  static void WriteTo(const TestRepository& repository, absl::string_view model, int version,
                      absl::string_view config = "") {
    repository.Write(absl::StrCat(model, "/config.pbtxt"), absl::StrCat(kIdentity, config));
    repository.Write(absl::StrCat(model, "/", version, "/weights.safetensors"), "");
  }

  // Starts the catalog and returns the first failure of the initial load.
  absl::Status Start(ModelControl control, std::vector<std::string> load_at_start = {}) {
    return Start({.repositories = {repository_.string()},
                  .control = control,
                  .load_at_start = std::move(load_at_start),
                  .cores = 2});
  }
  absl::Status Start(CatalogOptions options) { return StartOn(&clock_, std::move(options)); }
  absl::Status StartOn(Clock* clock, CatalogOptions options) {
    catalog_.emplace(std::move(options), clock, &metrics_);
    if (absl::Status scan = catalog_->Scan(); !scan.ok()) return scan;
    Pending loaded;
    catalog_->Start({.loaded = loaded.End()});
    return loaded.Await();
  }

  // Advances the clock until the catalog has seen the change that the test is about.
  template <typename Condition>
  void Eventually(const Condition& condition) {
    const absl::Time end = absl::Now() + absl::Seconds(60);
    while (!condition()) {
      ASSERT_LT(absl::Now(), end) << "it did not happen";
      clock_.Advance(absl::Seconds(15));
      std::this_thread::yield();
    }
  }

  // The same without advancing the clock, for what must not wait for a scan or would run into a timeout.
  template <typename Condition>
  static void Soon(const Condition& condition) {
    const absl::Time end = absl::Now() + absl::Seconds(60);
    while (!condition()) {
      ASSERT_LT(absl::Now(), end) << "it did not happen";
      std::this_thread::yield();
    }
  }

  int64_t Served(absl::string_view model, int64_t version = 0) const {
    const auto found = catalog_->FindReady(model, version);
    return found.ok() ? (*found)->version() : 0;
  }
  IndexEntry Line(const std::string& model, int64_t version) const {
    for (const IndexEntry& line : catalog_->Index())
      if (line.name == model && line.version == version) return line;
    return {};
  }
  absl::Status Load(const std::string& name, std::optional<std::string> config = std::nullopt) {
    Pending told;
    catalog_->Load(name, std::move(config), told.End());
    return told.Await();
  }
  absl::Status Unload(const std::string& name) {
    Pending told;
    catalog_->Unload(name, false, told.End());
    return told.Await();
  }

  TestRepository repository_;
  FakeClock clock_;
  Metrics metrics_{"test"};
  std::optional<Catalog> catalog_;
};

}  // namespace saccade::server
