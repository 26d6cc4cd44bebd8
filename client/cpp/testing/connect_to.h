// Connects a client in tests; fails the test if the options are invalid.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "client/cpp/client.h"

namespace saccade::client {

inline std::unique_ptr<Client> ConnectTo(const std::string& url, ClientOptions options = {}) {
  options.url = url;
  auto client = Client::Connect(std::move(options));
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

}  // namespace saccade::client
