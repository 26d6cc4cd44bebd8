#include "server/engine/engine.h"

#include <exception>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/api/error.h"
#include "models/api/error_text.h"
#include "models/api/registry.h"
#include "models/described/described_model.h"
#include "models/graphs/graph_program.h"
#include "models/programs/program.h"
#include "models/tasks/merge_tiles.h"
#include "server/engine/picture_engine.h"
#include "server/engine/program_engine.h"
#include "server/engine/tensor_pass.h"
#include "server/repository/files.h"

namespace saccade::server {
namespace {

absl::StatusOr<std::unique_ptr<Engine>> PicturesEngine(std::unique_ptr<models::Model> model,
                                                       const ModelSettings& settings) {
  const models::Task task = model->description().task;
  if (settings.tiles.size > 0 && !models::CanMergeTiles(task)) {
    return absl::InvalidArgumentError(absl::StrCat("the parameter 'tiles' is set, but the model's task is ",
                                                   models::TaskName(task),
                                                   "; expected detection or segmentation, or no tiles"));
  }
  return MakePictureEngine(std::move(model), settings);
}

// FAILED_PRECONDITION if the model fails on purpose and may not.
absl::Status CheckDrills(const models::Description& description, const ModelPermissions& permissions) {
  if (description.drills.empty() || permissions.drills) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "option ", absl::StrJoin(description.drills, " and option "), " of '", description.architecture,
      "' makes requests fail on purpose, which is not allowed; remove it, or start the daemon "
      "with --allow-drills to test how clients handle failures"));
}

}  // namespace

const std::string& WeightsFor(const ModelVersion& version, models::Precision precision) {
  const bool int8 = precision == models::Precision::kInt8 && !version.int8_weights_path.empty();
  return int8 ? version.int8_weights_path : version.weights_path;
}

namespace {

// The links of files that were found earlier may lead elsewhere by now.
absl::Status CheckLinks(const std::string& repository, const ModelVersion& version) {
  if (repository.empty()) return absl::OkStatus();
  for (const std::string* path : {&version.weights_path, &version.int8_weights_path}) {
    if (path->empty()) continue;
    if (absl::Status inside = CheckInside(repository, *path); !inside.ok()) return inside;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Engine>> LoadOurs(const ModelSettings& settings,
                                                 const EngineOptions& options) {
  const models::Options network =
      options.precision ? models::WithPrecision(settings.options, *options.precision) : settings.options;
  auto model =
      models::Load(settings.architecture, network, WeightsFor(options.version, models::PrecisionOf(network)),
                   settings.labels, options.gpu);
  if (absl::Status allowed = CheckDrills(model->description(), options.permissions); !allowed.ok())
    return allowed;
  return PicturesEngine(std::move(model), settings);
}

absl::Status CheckProgram(const ModelSettings& settings, const ModelPermissions& permissions) {
  if (!permissions.executable && !IsGraph(settings.backend)) {
    return absl::FailedPreconditionError(
        "backend 'pytorch' runs code from the model's file, which is not allowed; start the daemon with "
        "--allow-executable-models if you trust everyone who can write to the model repository");
  }
  return settings.pictures != nullptr ? absl::OkStatus() : CheckProgramSettings(settings);
}

absl::StatusOr<std::unique_ptr<Engine>> LoadProgram(const ModelSettings& settings,
                                                    const EngineOptions& options) {
  if (absl::Status served = CheckProgram(settings, options.permissions); !served.ok()) return served;
  const bool pictures = settings.pictures != nullptr;
  models::ProgramOptions wanted = {
      .signature = pictures ? models::SignatureOf(*settings.pictures) : SignatureOf(settings),
      .gpu = options.gpu,
      .instances = options.instances,
      .options = settings.options,
      .repository = settings.repository};
  wanted.signature.max_batch = settings.batching.max_batch_size;
  const std::string& file = options.version.weights_path;
  auto program = IsGraph(settings.backend) ? models::LoadGraph(file, std::move(wanted))
                                           : models::LoadProgram(file, std::move(wanted));
  if (!pictures) return MakeProgramEngine(std::move(program), settings);
  return PicturesEngine(models::MakeDescribedModel(std::move(program), *settings.pictures, settings.labels),
                        settings);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> LoadEngine(const ModelSettings& settings,
                                                   const EngineOptions& options) {
  if (absl::Status inside = CheckLinks(settings.repository, options.version); !inside.ok()) return inside;
  try {
    switch (settings.backend) {
      case Backend::kSaccade:
        return LoadOurs(settings, options);
      case Backend::kPytorch:
      case Backend::kOnnxruntime:
      case Backend::kOpenvino:
        return LoadProgram(settings, options);
      case Backend::kEnsemble:
        break;
    }
    return absl::UnimplementedError(absl::StrCat("backend '", NameOf(settings.backend),
                                                 "' is not supported; expected one that runs a network"));
  } catch (const models::LoadError& error) {
    return absl::InvalidArgumentError(error.what());
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory while loading the weights");
  } catch (const std::exception& error) {
    return absl::InternalError(models::ErrorText(error));
  }
}

absl::Status CheckEngine(const ModelSettings& settings, const ModelPermissions& permissions) {
  if (RunsFile(settings.backend)) return CheckProgram(settings, permissions);
  try {
    return CheckDrills(models::Describe(settings.architecture, settings.options, settings.labels),
                       permissions);
  } catch (const models::LoadError& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

}  // namespace saccade::server
