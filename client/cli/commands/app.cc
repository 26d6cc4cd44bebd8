#include "client/cli/commands/app.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "client/cli/commands/actions.h"
#include "client/cli/commands/bench.h"
#include "client/cli/commands/classify.h"
#include "client/cli/commands/depth.h"
#include "client/cli/commands/detect.h"
#include "client/cli/commands/embed.h"
#include "client/cli/commands/external.h"
#include "client/cli/commands/flags.h"
#include "client/cli/commands/init.h"
#include "client/cli/commands/models.h"
#include "client/cli/commands/params.h"
#include "client/cli/commands/restore.h"
#include "client/cli/commands/segment.h"
#include "client/cli/commands/status.h"
#include "client/cli/commands/stereo.h"
#include "client/cli/commands/tune.h"
#include "client/cli/commands/usage_error.h"
#include "client/cli/input/volume_file.h"
#include "client/cli/output/failure.h"
#include "client/cli/output/names.h"

namespace saccade::client {
namespace {

constexpr char kFooter[] =
    "Results are printed on standard output, everything else on standard error.\n"
    "Exit codes: 0 ok, 1 failure, 2 usage, 64 + gRPC code if the daemon returned an error (67 invalid "
    "argument,\n"
    "68 deadline exceeded, 69 not found, 72 overloaded, 78 no daemon or not serving, 80 unauthenticated).";

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
      ->check(NumberBetween(0.0, 1.0));
  command->add_flag("--no-masks", options.no_masks, "The same as --masks none")
      ->excludes("--mask-threshold")
      ->excludes(form);
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
      ->check(NumberBetween(0.0, 1.0));
  AddAnswerFormat(command, options.format, console);
}

void AddDetect(CLI::App& app, DetectCommand& options, Console& console) {
  CLI::App* command = app.add_subcommand("detect", "Send pictures and print the objects found on them");
  AddPictures(command, options, "PICTURE", "Folder for overlays with masks and boxes, one PNG per picture");
  AddRegion(command, options);
  AddTiles(command, options);
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
  AddTiles(command, options);
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

void AddDepth(CLI::App& app, DepthCommand& options, Console& console) {
  CLI::App* command = app.add_subcommand("depth", "Send pictures and print how far away things are");
  AddPictures(command, options, "PICTURE",
              "Folder for depth maps, coloured and exact, a PNG and a PFM file per picture");
  AddOutputSize(command, options.size, "depth map");
  AddRegion(command, options);
  AddAnswerFormat(command, options.format, console);
}

void AddEmbed(CLI::App& app, EmbedCommand& options, Console& console) {
  CLI::App* command = app.add_subcommand("embed", "Send pictures and print them as vectors");
  AddPictures(command, options, "PICTURE", "Folder for signed answers, if the model signs them");
  AddRegion(command, options);
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
      ->check(NumberBetween(0.001, 1000.0))
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
      ->check(NumberBetween(0.001, 1e6));
  command
      ->add_option("--seconds", options.seconds,
                   "Duration of the load; requests that were due and not sent by then are "
                   "counted and left out")
      ->check(NumberBetween(0.1, 86400.0))
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

void CheckSpan(const std::string& option, const std::string& text) {
  absl::Duration span;
  if (!absl::ParseDuration(text, &span) || span < absl::Microseconds(1) || span > absl::Hours(1))
    throw CLI::ValidationError(option,
                               text + " is not a valid time; expected up to an hour, e.g. 50ms or 1.5s");
}

CLI::Option* AddSpan(CLI::App* command, const std::string& name, std::string& span,
                     const std::string& description) {
  return command
      ->add_option_function<std::string>(
          name,
          [name, &span](const std::string& text) {
            CheckSpan(name, text);
            span = text;
          },
          description)
      ->type_name("TIME");
}

void AddTune(CLI::App& app, TuneCommand& options, Console& console) {
  CLI::App* command = app.add_subcommand(
      "tune",
      "Find the smallest configuration of a model that answers in time, from what its daemon measured");
  command->add_option("MODEL", options.model, "The model's name, as saccade models lists it")->required();
  CLI::Option* p99 =
      AddSpan(command, "--p99", options.p99, "99 of 100 requests have to be answered within it, e.g. 50ms");
  CLI::Option* rate = command->add_option("--rate", options.rate, "Requests per second, over all replicas")
                          ->check(NumberBetween(0.001, 1e7));
  CLI::Option* traffic = command->add_option("--traffic", options.traffic,
                                             "Recording to replay, with a line 'SECONDS [BUCKET]' for each "
                                             "request; --rate plays it at another speed");
  command
      ->add_option("--burstiness", options.burstiness,
                   "Coefficient of variation of the time between requests: 0 is even, 1 random, more bursty")
      ->check(NumberBetween(0.0, 20.0))
      ->capture_default_str()
      ->excludes(traffic);
  command
      ->add_option("--mix", options.mix,
                   "BUCKET=SHARE,... of the requests; by default as the daemon has computed them so far")
      ->excludes(traffic);
  AddSpan(command, "--deadline", options.deadline, "The deadline that clients set; none by default");
  command->add_option("--max-replicas", options.max_replicas, "Maximum number of replicas")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command
      ->add_option("--model-version", options.version,
                   "Version of the model; the highest that is ready by default")
      ->check(CLI::PositiveNumber);
  CLI::Option* latencies = command->add_option(
      "--latencies", options.latencies,
      "File of --save to use in place of a daemon; several, of other precisions or threads, are compared");
  CLI::Option* save =
      command->add_option("--save", options.save, "Write what the daemon has measured to this file")
          ->excludes(latencies);
  command->add_option("-o,--output", options.output, "Folder for config.pbtxt, values.yaml and plot.svg");
  command->add_option("--seed", options.seed, "Seed of the random arrivals")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("-q,--quiet", options.quiet, "Do not say which files were written");
  AddConnection(command, options.connection);
  AddFormat(command, options.format, console);
  command->callback([p99, rate, traffic, save] {
    if (p99->empty() && save->empty()) throw CLI::RequiredError("--p99");
    if (!p99->empty() && rate->empty() && traffic->empty()) throw CLI::RequiredError("--rate or --traffic");
  });
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
      "status", "Print whether a daemon is ready (exit code 0; 78 if not), and its models' statistics");
  command->add_option("--wait", options.wait_seconds, "Seconds to wait until it is ready")
      ->check(NumberBetween(0.0, 86400.0));
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

void AddInit(CLI::App& app, InitCommand& options) {
  CLI::App* command = app.add_subcommand(
      "init", "Make a model's folder from a weights file, and say what the file is; needs no daemon");
  command
      ->add_option("WEIGHTS", options.weights,
                   "A safetensors file, a state_dict (.pt), a TorchScript program, a package of AOTInductor "
                   "or an ONNX file")
      ->required();
  command->add_option("-o,--output", options.folder, "Folder to make, e.g. my-models/NAME")->required();
  command->add_option("--labels", options.labels, "File with a label per line, one for each class");
  command->add_option("--architecture", options.architecture,
                      "The network, if its weights do not say it; saccade params lists them");
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
  app.failure_message(
      [](const CLI::App* failed, const CLI::Error& error) { return UsageErrorText(*failed, error); });
  ClassifyCommand classify;
  DetectCommand detect;
  SegmentCommand segment;
  StereoCommand stereo;
  DepthCommand depth;
  EmbedCommand embed;
  ActionsCommand actions;
  RestoreCommand restore;
  BenchCommand bench;
  TuneCommand tune;
  ModelsCommand models;
  StatusCommand status;
  InitCommand init;
  ParamsCommand params;
  AddClassify(app, classify, console);
  AddDetect(app, detect, console);
  AddSegment(app, segment, console);
  AddStereo(app, stereo, console);
  AddDepth(app, depth, console);
  AddEmbed(app, embed, console);
  AddActions(app, actions, console);
  AddRestore(app, restore, console);
  AddBench(app, bench, console);
  AddTune(app, tune, console);
  AddModels(app, models, console);
  AddStatus(app, status, console);
  AddInit(app, init);
  AddParams(app, params, console);
  app.add_subcommand("bulk",
                     "Send whole folders, tar and Parquet files; runs saccade-bulk of the Python package");
  app.add_subcommand("evaluate",
                     "Measure a model on a public data set; runs saccade-evaluate of the Python package");
  app.add_subcommand("import",
                     "Write a network of PyTorch's libraries as a model's folder; runs saccade-import of the "
                     "Python package");
  app.add_subcommand("verify",
                     "Compare an imported model with its author's Python; runs saccade-verify of the Python "
                     "package");
  app.add_subcommand("prove",
                     "Verify a signed answer and compute it again; runs saccade-prove of the Python package");
  app.add_subcommand(
      "replay",
      "Send captured calls again and compare the answers; runs saccade-replay of the Python package");
  app.add_subcommand(
      "quantize",
      "Quantize a model of a repository on this machine to int8; runs saccade-quantize, which comes "
      "with the daemon");
  if (IsExternalCommand(arguments)) {
    Complain(console, RunExternalCommand(arguments));
    return kExitFailure;
  }

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
  if (app.got_subcommand("depth")) return RunDepth(depth, console);
  if (app.got_subcommand("embed")) return RunEmbed(embed, console);
  if (app.got_subcommand("actions")) return RunActions(actions, console);
  if (app.got_subcommand("restore")) return RunRestore(restore, console);
  if (app.got_subcommand("bench")) return RunBench(bench, console);
  if (app.got_subcommand("tune")) return RunTune(tune, console);
  if (app.got_subcommand("models")) return RunModels(models, console);
  if (app.got_subcommand("status")) return RunStatus(status, console);
  if (app.got_subcommand("init")) return RunInit(init, console);
  if (app.got_subcommand("params")) return RunParams(params, console);
  console.err << app.help();
  return kExitUsage;
}

}  // namespace saccade::client
