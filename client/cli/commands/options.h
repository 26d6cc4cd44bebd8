// The parsed options of each command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/output/format.h"
#include "client/cpp/types.h"

namespace saccade::client {

struct Connection {
  std::string url = "127.0.0.1:8001";
  double timeout_seconds = 30;
  // The daemon's default.
  int64_t max_message_bytes = 64 << 20;
  // Any of the other tls_ options enables TLS, too.
  bool tls = false;
  // Paths of PEM files; empty if not given.
  std::string tls_authorities;
  std::string tls_certificate;
  std::string tls_key;
  // The name in the daemon's certificate; empty stands for the host of the address.
  std::string tls_name;
  // File with the token; replaces the token of the environment.
  std::string token_file;
  bool token_without_tls = false;
};

// Options of all commands that send files.
struct InputsCommand {
  Connection connection;
  std::string model;
  std::vector<std::string> inputs;
  Format format = Format::kText;
  // Folder for drawings and other output; empty writes none.
  std::string output;
  int64_t version = 0;
  int priority = 0;
  bool quiet = false;
};

// Options of the commands that send several requests concurrently.
struct PicturesCommand : InputsCommand {
  // "X,Y,WIDTH,HEIGHT", validated by the option; empty stands for the whole picture.
  std::string region;
  // "SIZE:OVERLAP" or "whole", validated by the option; empty stands for the model's own tiles.
  std::string tiles;
  // Requests attention maps of the layer explain_layer; an empty name stands for the last layer.
  bool explain = false;
  std::string explain_layer;
  // Maximum number of maps; 0 selects the daemon's default.
  int explain_maps = 0;
  // "X,Y" each, validated by the option; empty stands for the middle position.
  std::vector<std::string> explain_at;
  // Enough for the daemon to fill a batch; each request holds its pictures in memory.
  int concurrency = 8;
  // Maximum number of retries of a request that was rejected temporarily.
  int retries = 3;
};

// Options of the commands that find objects or actions.
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
  // "WIDTHxHEIGHT" or "network", validated by the option; empty stands for the picture's size.
  std::string size;
};

struct StereoCommand : PicturesCommand {
  // See SegmentCommand.
  std::string size;
  // Also writes a PFM file, with the network's exact disparities instead of multiples of 1/256.
  bool pfm = false;
};

struct DepthCommand : PicturesCommand {
  // See SegmentCommand.
  std::string size;
};

struct EmbedCommand : PicturesCommand {};

struct ActionsCommand : FindCommand {
  // Lower than for pictures, because a video is larger.
  ActionsCommand() { concurrency = 2; }

  // If set, the inputs are the pictures of one clip, or folders with the pictures of one clip each; else
  // videos.
  bool frames = false;
  // 0 stands for the model's own.
  double frames_per_second = 0;
};

struct RestoreCommand : InputsCommand {
  // Half an hour: a large volume takes minutes and may have to wait for others.
  RestoreCommand() { connection.timeout_seconds = 1800; }

  // Shape of raw voxels; not set for TIFF files.
  std::optional<VolumeShape> shape;
  // The type that was sent if not set.
  std::optional<VoxelType> output_type;
  // Writes the voxels alone instead of a TIFF file.
  bool raw = false;
};

struct BenchCommand : InputsCommand {
  // Requests per second; 0 sends the next request when one was answered.
  double rate = 0;
  double seconds = 10;
  int concurrency = 16;
  int64_t seed = 1;
  // File for a plot; empty draws none.
  std::string plot;
};

struct TuneCommand {
  Connection connection;
  std::string model;
  int64_t version = 0;
  Format format = Format::kText;
  // Durations as absl::ParseDuration reads them, validated by the options; an empty deadline is none.
  std::string p99;
  std::string deadline;
  // Requests per second; 0 takes the recording's.
  double rate = 0;
  // Coefficient of variation of the gaps between requests.
  double burstiness = 1;
  // "BUCKET=SHARE,..."; empty stands for the mix that the daemon has computed.
  std::string mix;
  // Path of a recording; empty draws random arrivals.
  std::string traffic;
  // Files of --save, in place of a daemon.
  std::vector<std::string> latencies;
  // File for what the daemon has measured; empty writes none.
  std::string save;
  // Folder for config.pbtxt, values.yaml and plot.svg; empty writes none.
  std::string output;
  int max_replicas = 100;
  int64_t seed = 1;
  bool quiet = false;
};

struct ModelsCommand {
  Connection connection;
  Format format = Format::kText;
};

struct StatusCommand {
  Connection connection;
  Format format = Format::kText;
  // How long to wait for the daemon to become ready; 0 does not wait.
  double wait_seconds = 0;
  // Interval at which the status is printed again; 0 prints it once.
  double watch_seconds = 0;
};

struct InitCommand {
  std::string weights;
  // The model's folder, which is made.
  std::string folder;
  // File with a label per line; empty for none.
  std::string labels;
  // Empty to recognise it from the weights.
  std::string architecture;
};

struct ParamsCommand {
  std::string architecture;
  // KEY=VALUE each.
  std::vector<std::string> options;
  // Prints every layer, not only the sums.
  bool layers = false;
  Format format = Format::kText;
};

}  // namespace saccade::client
