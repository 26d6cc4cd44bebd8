// What a command line comes to, command by command.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace saccade::client {

enum class Format { kText, kJson };

struct Connection {
  std::string url = "127.0.0.1:8001";
  double timeout_seconds = 30;
  // The daemon's own default.
  int64_t max_message_bytes = 64 << 20;
};

struct ClassifyCommand {
  Connection connection;
  std::string model;
  std::vector<std::string> pictures;
  Format format = Format::kText;
  // Where overlays go; empty draws none.
  std::string output;
  int64_t version = 0;
  int top_k = 5;
  int priority = 0;
  // Enough to let the daemon fill a batch; each holds one picture in memory.
  int concurrency = 8;
  bool quiet = false;
};

struct ModelsCommand {
  Connection connection;
  Format format = Format::kText;
};

struct StatusCommand {
  Connection connection;
  Format format = Format::kText;
  // How long to wait for a daemon that is not ready; 0 asks once.
  double wait_seconds = 0;
};

struct ParamsCommand {
  std::string architecture;
  // KEY=VALUE each.
  std::vector<std::string> options;
  // Layer by layer, not the sums alone.
  bool layers = false;
  Format format = Format::kText;
};

}  // namespace saccade::client
