#include "client/cli/app.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/numbers.h"
#include "client/cli/actions.h"
#include "client/cli/bench.h"
#include "client/cli/classify.h"
#include "client/cli/detect.h"
#include "client/cli/failure.h"
#include "client/cli/models.h"
#include "client/cli/params.h"
#include "client/cli/report.h"
#include "client/cli/restore.h"
#include "client/cli/segment.h"
#include "client/cli/stereo.h"
#include "client/cli/volume_file.h"

namespace saccade::client {
namespace {

constexpr char kFooter[] =
    "Results are printed on standard output, everything else on standard error.\n"
    "Exit codes: 0 ok, 1 failure, 2 usage, 64 + gRPC code if the daemon returned an error (67 invalid "
    "argument,\n"
    "68 deadline exceeded, 69 not found, 72 overloaded, 78 no daemon or not serving).";

void AddTls(CLI::App* command, Connection& connection) {
  command
      ->add_flag("--tls", connection.tls,
                 "Use TLS and trust this machine's authorities. Implied by the other --tls options")
      ->envname("SACCADE_TLS");
  command->add_option("--tls-ca", connection.tls_authorities, "PEM file of the authorities to trust instead")
      ->envname("SACCADE_TLS_CA");
  command->add_option("--tls-cert", connection.tls_certificate, "PEM file of the client certificate (mTLS)")
      ->envname("SACCADE_TLS_CERT");
  command
      ->add_option("--tls-key", connection.tls_key,
                   "PEM file of the client certificate's key, without a passphrase")
      ->envname("SACCADE_TLS_KEY");
  command
      ->add_option("--tls-name", connection.tls_name,
                   "The name in the daemon's certificate, if it differs from the address")
      ->envname("SACCADE_TLS_NAME");
  // No option takes the token itself: every user of the machine could read it in the process list.
  command
      ->add_option("--token-file", connection.token_file,
                   "File with the token that authenticates the client; default: the value of SACCADE_TOKEN")
      ->envname("SACCADE_TOKEN_FILE");
  command->add_flag("--token-without-tls", connection.token_without_tls,
                    "Allow sending the token in clear text to other machines");
}

void AddConnection(CLI::App* command, Connection& connection) {
  command->add_option("--url", connection.url, "The daemon's gRPC address, HOST:PORT")
      ->envname("SACCADE_URL")
      ->capture_default_str();
  command->add_option("--timeout", connection.timeout_seconds, "Seconds one call may take")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  command
      ->add_option("--max-message-bytes", connection.max_message_bytes,
                   "Maximum size of a request or response; the daemon has a limit of its own")
      ->check(CLI::Range(int64_t{1}, int64_t{INT32_MAX}))
      ->capture_default_str();
  AddTls(command, connection);
}

using Formats = std::vector<std::pair<std::string, Format>>;

constexpr char kTextOrJson[] = "text: a table; json: one versioned document";
constexpr char kTextOrJsonOrLines[] =
    "text: a table; json: one versioned document; jsonl: one line per result, as they arrive";

// `formats` must begin with text and json.
void AddFormat(CLI::App* command, Format& format, Console& console,
               const Formats& formats = {{"text", Format::kText}, {"json", Format::kJson}},
               const std::string& description = kTextOrJson) {
  std::vector<std::string> names;
  for (const auto& [name, value] : formats) names.push_back(name);
  CLI::Option* option = command
                            ->add_option_function<std::string>(
                                "--format",
                                [&format, formats](const std::string& wanted) {
                                  for (const auto& [name, value] : formats) {
                                    if (name == wanted) format = value;
                                  }
                                },
                                description)
                            ->check(CLI::IsMember(names))
                            ->default_str("text");
  command->add_flag_callback(
             "--json", [&format] { format = Format::kJson; }, "The same as --format json")
      ->excludes(option);
  command->add_flag_callback(
      "--no-color", [&console] { console.color = false; }, "No colours, as with NO_COLOR set");
}

// For commands that print one result per file. `more` are formats of one command only, listed after the
// common ones.
void AddAnswerFormat(CLI::App* command, Format& format, Console& console, const Formats& more = {},
                     const std::string& about_more = "") {
  Formats formats = {{"text", Format::kText}, {"json", Format::kJson}, {"jsonl", Format::kJsonLines}};
  formats.insert(formats.end(), more.begin(), more.end());
  AddFormat(command, format, console, formats, kTextOrJsonOrLines + about_more);
}

// Adds all common options except --format.
void AddInputs(CLI::App* command, InputsCommand& options, const std::string& name,
               const std::string& description) {
  command->add_option(name, options.inputs, description)->required();
  command->add_option("-m,--model", options.model, "The model's name; `saccade models` lists them")
      ->required();
  command->add_option("--model-version", options.version, "0 selects the highest version that is ready")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--priority", options.priority,
                   "Requests with a larger priority are served first, -100 to 100")
      ->check(CLI::Range(-100, 100))
      ->capture_default_str();
  command->add_flag("-q,--quiet", options.quiet, "Print only errors on standard error");
  AddConnection(command, options.connection);
}

CLI::Option* AddOutput(CLI::App* command, InputsCommand& options, const std::string& output) {
  return command->add_option("-o,--output", options.output, output + "; created if missing");
}

void AddPictures(CLI::App* command, PicturesCommand& options, const std::string& name,
                 const std::string& output,
                 const std::string& description =
                     "JPEG, PNG, WebP, TIFF or BMP files, folders of them, or a quoted "
                     "pattern; - reads standard input") {
  AddInputs(command, options, name, description);
  AddOutput(command, options, output);
  command->add_option("--concurrency", options.concurrency, "Maximum number of requests in flight")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command
      ->add_option("--retries", options.retries,
                   "Maximum number of retries of a request that the daemon rejected temporarily")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
}

void AddRegion(CLI::App* command, PicturesCommand& options) {
  command
      ->add_option("--region", options.region,
                   "X,Y,WIDTH,HEIGHT: the only part of each picture that the model sees")
      ->check([](const std::string& text) {
        return ParseRegion(text) ? std::string() : "expected four numbers, X,Y,WIDTH,HEIGHT";
      });
}

void AddExplain(CLI::App* command, PicturesCommand& options) {
  command
      ->add_option_function<std::string>(
          "--explain",
          [&options](const std::string& layer) {
            options.explain = true;
            options.explain_layer = layer;
          },
          "Request the attention maps of this layer, by default the last one, and draw them "
          "into "
          "--output; an unknown name lists all layers")
      ->expected(0, 1);
  command
      ->add_option(
          "--explain-at", options.explain_at,
          "X,Y, each from 0 to 1 across and down the network's input: a position whose maps to show, for "
          "attention with maps per position; may be repeated. Default: the middle")
      ->expected(1)
      ->take_all()
      ->check([](const std::string& text) {
        return ParsePosition(text) ? std::string() : "expected two numbers from 0 to 1, X,Y";
      })
      ->needs("--explain");
  command
      ->add_option("--explain-maps", options.explain_maps,
                   "Maximum number of maps, the layer's first; 16 by default")
      ->check(CLI::Range(1, 64))
      ->needs("--explain");
}

// `what` names the map in the help text; its size is the picture's by default.
void AddOutputSize(CLI::App* command, std::string& size, const std::string& what) {
  command
      ->add_option(
          "--size", size,
          "WIDTHxHEIGHT of the " + what +
              " in --output, or network for the size at which the network saw the picture; by default the "
              "picture's size")
      ->check([](const std::string& text) {
        return ParseOutputSize(text) ? std::string() : "expected WIDTHxHEIGHT or network";
      })
      ->needs("--output");
}

void AddMasks(CLI::App* command, DetectCommand& options) {
  CLI::Option* const form = command
                                ->add_option_function<std::string>(
                                    "--masks",
                                    [&options](const std::string& wanted) {
                                      options.no_masks = wanted == "none";
                                      options.mask_form = wanted == "png"        ? MaskForm::kPng
                                                          : wanted == "polygons" ? MaskForm::kPolygons
                                                                                 : MaskForm::kRle;
                                    },
                                    "Form of the masks in --json: rle: COCO's run lengths; png: a "
                                    "grey picture of the mask's "
                                    "part; polygons; none: boxes only")
                                ->check(CLI::IsMember({"rle", "png", "polygons", "none"}))
                                ->default_str("rle");
  command
      ->add_option("--mask-threshold", options.mask_threshold,
                   "Minimum probability for a pixel to be in the mask, 0 to 1")
      ->check(CLI::Range(0.0, 1.0));
  command->add_flag("--no-masks", options.no_masks, "The same as --masks none")
      ->excludes("--mask-threshold")
      ->excludes(form);
}

// Adds options that omit some of the results; `each` is the unit in which results are found.
void AddChoice(CLI::App* command, FindCommand& options, const std::string& each) {
  command->add_option("--score-threshold", options.score_threshold, "Omit results with a lower score")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--top-k", options.top_k, "Maximum number per " + each + ", best first; 0 for all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--class", options.classes, "Only this class, by index or name; may be repeated")
      ->expected(1)
      ->take_all();
}

void AddClassify(CLI::App& app, ClassifyCommand& options, Console& console) {
  CLI::App* command = app.add_subcommand("classify", "Send pictures and print their most probable classes");
  AddPictures(command, options, "PICTURE", "Folder for overlays, one PNG per picture");
  AddRegion(command, options);
  AddExplain(command, options);
  command->add_option("--top-k", options.top_k, "Number of classes to print, most probable first")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      ->add_option("--probability-threshold", options.probability_threshold,
                   "Omit classes with a lower probability")
      ->check(CLI::Range(0.0, 1.0));
  AddAnswerFormat(command, options.format, console);
}

void AddDetect(CLI::App& app, DetectCommand& options, Console& console) {
  CLI::App* command = app.add_subcommand("detect", "Send pictures and print the objects found on them");
  AddPictures(command, options, "PICTURE", "Folder for overlays with masks and boxes, one PNG per picture");
  AddRegion(command, options);
  AddExplain(command, options);
  AddChoice(command, options, "picture");
  AddMasks(command, options);
  AddAnswerFormat(command, options.format, console,
                  {{"coco", Format::kCoco}, {"roboflow", Format::kRoboflow}},
                  "; coco: COCO's array of results; roboflow: the input of supervision");
}

void AddSegment(CLI::App& app, SegmentCommand& options, Console& console) {
  CLI::App* command =
      app.add_subcommand("segment", "Send pictures and print how much of them each class covers");
  AddPictures(command, options, "PICTURE", "Folder for overlays and label maps, two PNGs per picture");
  AddOutputSize(command, options.size, "label map");
  AddRegion(command, options);
  AddExplain(command, options);
  AddAnswerFormat(command, options.format, console);
}

void AddStereo(CLI::App& app, StereoCommand& options, Console& console) {
  CLI::App* command = app.add_subcommand("stereo", "Send rectified pairs and print their disparities");
  AddPictures(command, options, "LEFT_RIGHT",
              "Folder for disparities, coloured and as KITTI's 16-bit PNG, two PNGs per pair");
  AddOutputSize(command, options.size, "disparities");
  AddRegion(command, options);
  AddExplain(command, options);
  command->add_flag("--pfm", options.pfm, "Also write a PFM file with the exact disparities to --output");
  AddAnswerFormat(command, options.format, console);
}

void AddActions(CLI::App& app, ActionsCommand& options, Console& console) {
  CLI::App* command = app.add_subcommand("actions", "Send clips and print the actions found in them");
  AddPictures(
      command, options, "CLIP", "Folder for timelines, one PNG per clip",
      "MP4, MOV, Matroska, WebM or AVI files, or folders of them; - reads standard input; with --frames "
      "pictures");
  AddExplain(command, options);
  CLI::Option* frames = command->add_flag("--frames", options.frames,
                                          "The pictures are one clip's frames in the order given; or "
                                          "folders, each with a clip's frames, by name");
  command
      ->add_option("--fps", options.frames_per_second, "Frame rate of the frames; by default the model's own")
      ->check(CLI::Range(0.001, 10000.0))
      ->needs(frames);
  AddChoice(command, options, "clip");
  AddAnswerFormat(command, options.format, console);
}

CLI::Option* AddVoxelType(CLI::App* command, const std::string& name, const std::string& description,
                          const std::function<void(VoxelType)>& take) {
  return command
      ->add_option_function<std::string>(
          name,
          [take](const std::string& wanted) {
            for (const VoxelType type : {VoxelType::kUint8, VoxelType::kUint16, VoxelType::kFloat32}) {
              if (NameOf(type) == wanted) take(type);
            }
          },
          description)
      ->check(CLI::IsMember(
          {NameOf(VoxelType::kUint8), NameOf(VoxelType::kUint16), NameOf(VoxelType::kFloat32)}));
}

void AddRestore(CLI::App& app, RestoreCommand& options, Console& console) {
  CLI::App* command = app.add_subcommand("restore", "Send volumes and write the restored volumes");
  AddInputs(command, options, "VOLUME",
            "TIFF files with one grey page per plane, or folders of them; with --shape raw voxels");
  AddOutput(command, options,
            "Folder for the restored volumes, as TIFF files, and a PNG of the middle plane of each")
      ->required();
  // --shape and --type write to the same VolumeShape and may come in any order.
  CLI::Option* shape = command->add_option_function<std::string>(
      "--shape",
      [&options](const std::string& text) {
        const auto parsed = ParseShape(text);
        if (!parsed.ok()) throw CLI::ValidationError("--shape", std::string(parsed.status().message()));
        const VoxelType type = options.shape ? options.shape->type : parsed->type;
        options.shape = *parsed;
        options.shape->type = type;
      },
      "DEPTHxHEIGHTxWIDTH of raw voxels: little-endian, plane by plane and row by row");
  CLI::Option* type = AddVoxelType(command, "--type", "Type of the raw voxels", [&options](VoxelType wanted) {
    if (!options.shape) options.shape.emplace();
    options.shape->type = wanted;
  });
  shape->needs(type);
  type->needs(shape);
  AddVoxelType(
      command, "--output-type",
      "Type of the restored voxels; by default that of the volume sent. Integers are rounded and clipped",
      [&options](VoxelType wanted) { options.output_type = wanted; });
  command->add_flag("--raw", options.raw,
                    "Write only the voxels instead of a TIFF file, which is limited to 4 GiB");
  AddAnswerFormat(command, options.format, console);
}

void AddBench(CLI::App& app, BenchCommand& options, Console& console) {
  CLI::App* command = app.add_subcommand("bench", "Send files for a while and print latencies by stage");
  AddInputs(
      command, options, "FILE",
      "Input files of the model, folders of them, or a quoted pattern; sent in turn, for stereo models left "
      "and right");
  command
      ->add_option("--rate", options.rate,
                   "Requests per second, sent at random times independent of the responses; without it "
                   "each request is sent when the previous one was answered")
      ->check(CLI::Range(0.001, 1e6));
  command->add_option("--seconds", options.seconds, "Duration of the load")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  command->add_option("--concurrency", options.concurrency, "Maximum number of requests in flight")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--seed", options.seed, "Seed of the random times")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--plot", options.plot, "PNG file for a plot of latencies over time and by stage");
  AddFormat(command, options.format, console);
}

void AddModels(CLI::App& app, ModelsCommand& options, Console& console) {
  CLI::App* command = app.add_subcommand("models", "List the models of a daemon, ready or not");
  AddConnection(command, options.connection);
  AddFormat(command, options.format, console);
}

double WatchSeconds(const std::vector<std::string>& given) {
  double seconds = 2;
  if (!given.empty() && !given[0].empty() && given[0] != "{}" &&
      (!absl::SimpleAtod(given[0], &seconds) || !(seconds >= 0.01 && seconds <= 86400))) {
    throw CLI::ValidationError("--watch",
                               given[0] + " is not a valid interval; expected 0.01 to 86400 seconds");
  }
  return seconds;
}

void AddStatus(CLI::App& app, StatusCommand& options, Console& console) {
  CLI::App* command = app.add_subcommand(
      "status",
      "Print whether a daemon is live and ready, and its models' statistics; exit code 0 only if ready");
  command->add_option("--wait", options.wait_seconds, "Seconds to wait until it is ready")
      ->check(CLI::Range(0.0, 86400.0));
  command
      ->add_option_function<std::vector<std::string>>(
          "--watch",
          [&options](const std::vector<std::string>& given) { options.watch_seconds = WatchSeconds(given); },
          "Print again every SECONDS, by default 2, with the statistics since the last time; until Ctrl-C")
      ->expected(0, 1)
      ->type_name("SECONDS");
  AddConnection(command, options.connection);
  AddFormat(command, options.format, console);
}

void AddParams(CLI::App& app, ParamsCommand& options, Console& console) {
  CLI::App* command =
      app.add_subcommand("params", "Count a network's parameters and multiply-adds; needs no daemon");
  command->add_option("ARCHITECTURE", options.architecture, "E.g. sanet; an unknown one lists them all")
      ->required();
  command->add_option("--option", options.options, "KEY=VALUE of the architecture; may be repeated")
      ->expected(1)
      ->take_all();
  command->add_flag("--layers", options.layers,
                    "Print every layer in the order of execution, not only the sums");
  AddFormat(command, options.format, console);
}

}  // namespace

int RunApp(std::vector<std::string> arguments, Console& console) {
  CLI::App app("Sends pictures, clips and volumes to a Saccade daemon.", "saccade");
  app.set_version_flag("--version", std::string("saccade ") + SACCADE_VERSION);
  app.require_subcommand(0, 1);
  app.footer(kFooter);
  ClassifyCommand classify;
  DetectCommand detect;
  SegmentCommand segment;
  StereoCommand stereo;
  ActionsCommand actions;
  RestoreCommand restore;
  BenchCommand bench;
  ModelsCommand models;
  StatusCommand status;
  ParamsCommand params;
  AddClassify(app, classify, console);
  AddDetect(app, detect, console);
  AddSegment(app, segment, console);
  AddStereo(app, stereo, console);
  AddActions(app, actions, console);
  AddRestore(app, restore, console);
  AddBench(app, bench, console);
  AddModels(app, models, console);
  AddStatus(app, status, console);
  AddParams(app, params, console);

  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    if (app.exit(error, console.out, console.err) != 0) return kExitUsage;
    return Flush(console) ? kExitOk : kExitFailure;
  }
  // Not left to CLI11, which would report a missing command when a flag is misspelt.
  if (app.got_subcommand("classify")) return RunClassify(classify, console);
  if (app.got_subcommand("detect")) return RunDetect(detect, console);
  if (app.got_subcommand("segment")) return RunSegment(segment, console);
  if (app.got_subcommand("stereo")) return RunStereo(stereo, console);
  if (app.got_subcommand("actions")) return RunActions(actions, console);
  if (app.got_subcommand("restore")) return RunRestore(restore, console);
  if (app.got_subcommand("bench")) return RunBench(bench, console);
  if (app.got_subcommand("models")) return RunModels(models, console);
  if (app.got_subcommand("status")) return RunStatus(status, console);
  if (app.got_subcommand("params")) return RunParams(params, console);
  console.err << app.help();
  return kExitUsage;
}

}  // namespace saccade::client
