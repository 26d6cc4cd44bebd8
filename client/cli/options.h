// What a command line comes to, command by command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/types.h"

namespace saccade::client {

enum class Format { kText, kJson, kJsonLines, kCoco, kRoboflow };

struct Connection {
  std::string url = "127.0.0.1:8001";
  double timeout_seconds = 30;
  // The daemon's own default.
  int64_t max_message_bytes = 64 << 20;
  // Any of those below it asks for it as well.
  bool tls = false;
  // Files, empty if there are none.
  std::string tls_authorities;
  std::string tls_certificate;
  std::string tls_key;
  // The name in the daemon's certificate; empty is the address's.
  std::string tls_name;
  // In place of the environment's token.
  std::string token_file;
  bool token_without_tls = false;
};

// What every command has that sends files.
struct InputsCommand {
  Connection connection;
  std::string model;
  std::vector<std::string> inputs;
  Format format = Format::kText;
  // The folder for what is drawn; empty draws nothing.
  std::string output;
  int64_t version = 0;
  int priority = 0;
  bool quiet = false;
};

// With several requests under way at once.
struct PicturesCommand : InputsCommand {
  // "X,Y,WIDTH,HEIGHT", as its option checks; empty is the whole picture.
  std::string region;
  // Asks for attention's maps; of the layer, which may be empty.
  bool explain = false;
  std::string explain_layer;
  // How many maps at most; 0 leaves it to the daemon.
  int explain_maps = 0;
  // "X,Y" each, as its option checks; none is the one in the middle.
  std::vector<std::string> explain_at;
  // Enough to let the daemon fill a batch; each holds its pictures in memory.
  int concurrency = 8;
  // How often a call is repeated that the daemon could not take, but may later.
  int retries = 3;
};

// What is asked of those that find something, or nothing.
struct FindCommand : PicturesCommand {
  std::optional<float> score_threshold;
  // 0 shows all that the model finds.
  int top_k = 0;
  // Indices or names; empty shows every class.
  std::vector<std::string> classes;
};

struct ClassifyCommand : PicturesCommand {
  int top_k = 5;
  std::optional<float> probability_threshold;
};

struct DetectCommand : FindCommand {
  bool no_masks = false;
  MaskForm mask_form = MaskForm::kRle;
  std::optional<float> mask_threshold;
};

struct SegmentCommand : PicturesCommand {
  // "WIDTHxHEIGHT" or "network", as its option checks; empty is the picture's.
  std::string size;
};

struct StereoCommand : PicturesCommand {
  // As SegmentCommand's.
  std::string size;
  // A PFM file as well: the disparities as the network gave them, not in 256ths.
  bool pfm = false;
};

struct ActionsCommand : FindCommand {
  // A video is larger than a picture.
  ActionsCommand() { concurrency = 2; }

  // The inputs are pictures of one clip, or folders with a clip's pictures each; videos otherwise.
  bool frames = false;
  // 0 stands for the model's own.
  double frames_per_second = 0;
};

struct RestoreCommand : InputsCommand {
  // Half an hour: a large volume takes minutes, and waits for others.
  RestoreCommand() { connection.timeout_seconds = 1800; }

  // Of raw voxels; TIFF files tell their own.
  std::optional<VolumeShape> shape;
  // As it was sent if it is not set.
  std::optional<VoxelType> output_type;
  // Voxels alone, no TIFF file.
  bool raw = false;
};

struct BenchCommand : InputsCommand {
  // Requests a second; 0 sends the next one when one was answered.
  double rate = 0;
  double seconds = 10;
  int concurrency = 16;
  int64_t seed = 1;
  // The file for a plot; empty draws none.
  std::string plot;
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
  // Between two looks; 0 looks once.
  double watch_seconds = 0;
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
