// A port on 127.0.0.1 with sessions that a test defines.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/net/port.h"
#include "server/net/refusal.h"
#include "server/net/testing/hook_session.h"

namespace saccade::server {

class CountingRefusals final : public RefusalCounter {
 public:
  void Count(Refusal refusal) override { ++counts_[static_cast<size_t>(refusal)]; }
  void CountCut(size_t requests) override { cut_ += requests; }
  int count(Refusal refusal) const { return counts_[static_cast<size_t>(refusal)]; }
  size_t cut() const { return cut_; }

 private:
  std::array<std::atomic<int>, kRefusals> counts_ = {};
  std::atomic<size_t> cut_ = 0;
};

class PortTest : public testing::Test {
 protected:
  // Options of a port with `loops` event loops; a test may change them.
  PortOptions Options(int loops = 2) {
    for (int i = 0; i < loops; ++i) {
      auto loop = EventLoop::Create("test-loop-" + std::to_string(i));
      EXPECT_TRUE(loop.ok()) << loop.status();
      loops_.push_back(*std::move(loop));
    }
    PortOptions options;
    options.port_flag = "--http-port";
    options.host = "127.0.0.1";
    for (const auto& loop : loops_) options.loops.push_back(loop.get());
    options.make_session = [this](Transport* transport) {
      return std::make_unique<HookSession>(transport, &hooks_);
    };
    options.refusals = &refusals_;
    return options;
  }

  void Open(PortOptions options) {
    auto port = Port::Open(std::move(options));
    ASSERT_TRUE(port.ok()) << port.status();
    port_ = *std::move(port);
  }

  CountingRefusals refusals_;
  SessionHooks hooks_;
  std::vector<std::unique_ptr<EventLoop>> loops_;
  std::unique_ptr<Port> port_;
};

}  // namespace saccade::server
