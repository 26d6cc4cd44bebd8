#include "server/protocols/rest/operations.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace saccade::server {
namespace {

constexpr char kScript[] = "text/javascript";
constexpr char kNoTraces[] = "tracing is configured by environment variables";
constexpr char kNoCuda[] = "shared memory is not allowed (--allow-shared-memory), or there is no GPU";
constexpr char kNotCaptured[] = "calls are not captured (--capture, --capture-sink)";
constexpr char kNotAllowed[] = "shared memory is not allowed (--allow-shared-memory)";

constexpr Operation kOperations[] = {
    {"GET", "/", "The page", "", "text/html"},
    {"GET", "/page.css", "The page's style", "", "text/css"},
    {"GET", "/page.js", "A script of the page", "", kScript},
    {"GET", "/attention.js", "A script of the page", "", kScript},
    {"GET", "/clip.js", "A script of the page", "", kScript},
    {"GET", "/findings.js", "A script of the page", "", kScript},
    {"GET", "/viewer.js", "A script of the page", "", kScript},
    {"GET", "/shown.js", "A script of the page", "", kScript},
    {"GET", "/picture.js", "A script of the page", "", kScript},
    {"GET", "/masks.js", "A script of the page", "", kScript},
    {"GET", "/files.js", "A script of the page", "", kScript},
    {"GET", "/boxes.js", "A script of the page", "", kScript},
    {"GET", "/code.js", "A script of the page", "", kScript},
    {"GET", "/strip.js", "A script of the page", "", kScript},
    {"GET", "/load.js", "A script of the page", "", kScript},
    {"GET", "/loading.js", "A script of the page", "", kScript},
    {"GET", "/text.js", "A script of the page", "", kScript},
    {"GET", "/models.js", "A script of the page", "", kScript},
    {"GET", "/overlay.js", "A script of the page", "", kScript},
    {"GET", "/point.js", "A script of the page", "", kScript},
    {"GET", "/request.js", "A script of the page", "", kScript},
    {"GET", "/tiff.js", "A script of the page", "", kScript},
    {"GET", "/token.js", "A script of the page", "", kScript},
    {"GET", "/volume.js", "A script of the page", "", kScript},
    {"GET", "/address.js", "A script of the page", "", kScript},
    {"GET", "/camera.js", "A script of the page", "", kScript},
    {"GET", "/charts.js", "A script of the page", "", kScript},
    {"GET", "/compare.js", "A script of the page", "", kScript},
    {"GET", "/matching.js", "A script of the page", "", kScript},
    {"GET", "/samples.js", "A script of the page", "", kScript},
    {"GET", "/session.js", "A script of the page", "", kScript},
    {"GET", "/icon.svg", "The page's icon", "", "image/svg+xml"},
    {"GET", "/openapi.json", "This document", "", "OpenApi"},
    {"GET", "/metrics", "The metrics, as text or OpenMetrics; on the metrics port", "", "text/plain"},

    {"POST", "/v1/predict", "Runs one request of saccade.v1", "v1.request.PredictRequest",
     "v1.PredictResponse"},
    {"POST", "/v1/predict/{model}", "Runs one request: the body is a file, the options are in the query", "",
     "v1.PredictResponse"},
    {"GET", "/v1/models", "Every model version, ready or not", "", "v1.ListModelsResponse"},
    {"GET", "/v1/models/{model}/drift", "What a model is sent and answers now, beside what it was before", "",
     "v1.Drift"},
    {"GET", "/v1/models/{model}/samples", "The sample files of a model", "", "v1.Samples"},
    {"GET", "/v1/models/{model}/samples/{sample}", "A sample file of a model", "",
     "application/octet-stream"},
    {"GET", "/v1/models/{model}/shadow", "How the answers of a model's shadow version compare", "",
     "v1.Shadow"},
    {"GET", "/v1/models/{model}/shadow/pictures/{number}", "A picture on whose answer the versions differ",
     "", "application/octet-stream"},
    {"GET", "/v1/capture", "Which calls are captured, and where", "", "v1.Capture", 501, kNotCaptured},
    {"POST", "/v1/capture", "Changes which calls are captured", "v1.CaptureChoice", "v1.Capture", 501,
     kNotCaptured},
    {"GET", "/v1/load", "The models' counters, and what is queued and in flight", "", "v1.Load"},

    {"GET", "/v2", "Name, version and extensions of the server", "", "v2.ServerMetadata"},
    {"GET", "/v2/health/live", "Whether the server is live", "", "v2.Live", 503, "a forward pass hangs"},
    {"GET", "/v2/health/ready", "Whether the server is ready", "", "v2.Ready", 503, "loading or draining"},
    {"GET", "/v2/models/{model}", "Inputs and outputs of a model", "", "v2.ModelMetadata"},
    {"GET", "/v2/models/{model}/ready", "Whether a model is ready", "", "v2.ModelReady", 503,
     "it is not ready"},
    {"POST", "/v2/models/{model}/infer", "Runs one request of the Open Inference Protocol", "v2.InferRequest",
     "v2.InferResponse", 501, "part of the protocol that is not supported, such as sequences"},
    {"GET", "/v2/models/{model}/config", "The completed configuration of a model", "", "v2.ModelConfig"},
    {"GET", "/v2/models/{model}/stats", "Statistics of a model", "", "v2.Statistics"},
    {"GET", "/v2/models/stats", "Statistics of all models", "", "v2.Statistics"},
    {"POST", "/v2/repository/index", "What the model repositories hold", "v2.IndexRequest", "v2.Index"},
    {"POST", "/v2/repository/models/{model}/load", "Loads a model (--model-control-mode=explicit)",
     "v2.LoadRequest", "", 501, "files in a load are not supported"},
    {"POST", "/v2/repository/models/{model}/unload", "Unloads a model (--model-control-mode=explicit)",
     "v2.UnloadRequest"},
    {"GET", "/v2/logging", "The log settings", "", "v2.LogSettings"},
    {"POST", "/v2/logging", "Changes log settings", "v2.LogSettings", "v2.LogSettings", 501,
     "log files and other formats are not supported"},
    {"GET", "/v2/trace/setting", "Not supported", "", "", 503, kNoTraces},
    {"POST", "/v2/trace/setting", "Not supported", "v2.Any", "", 503, kNoTraces},
    {"GET", "/v2/models/{model}/trace/setting", "Not supported", "", "", 503, kNoTraces},
    {"POST", "/v2/models/{model}/trace/setting", "Not supported", "v2.Any", "", 503, kNoTraces},
    {"GET", "/v2/systemsharedmemory/status", "All regions of shared memory", "", "v2.Regions"},
    {"GET", "/v2/systemsharedmemory/region/{region}/status", "One region of shared memory", "", "v2.Regions"},
    {"POST", "/v2/systemsharedmemory/region/{region}/register", "Registers a region of shared memory",
     "v2.RegisterRequest", "", 501, kNotAllowed},
    {"POST", "/v2/systemsharedmemory/unregister", "Unregisters all regions of shared memory", "v2.Any"},
    {"POST", "/v2/systemsharedmemory/region/{region}/unregister", "Unregisters a region of shared memory",
     "v2.Any"},
    {"GET", "/v2/cudasharedmemory/status", "All regions of CUDA shared memory", "", "v2.CudaRegions"},
    {"GET", "/v2/cudasharedmemory/region/{region}/status", "One region of CUDA shared memory", "",
     "v2.CudaRegions"},
    {"POST", "/v2/cudasharedmemory/region/{region}/register", "Registers a region of CUDA shared memory",
     "v2.CudaRegisterRequest", "", 501, kNoCuda},
    {"POST", "/v2/cudasharedmemory/unregister", "Unregisters all regions of CUDA shared memory", "v2.Any"},
    {"POST", "/v2/cudasharedmemory/region/{region}/unregister", "Unregisters a region of CUDA shared memory",
     "v2.Any"},
};

// JSON but for the schemas of tensors, whose places are marked as <... tensor>.
constexpr char kWrittenSchemas[] = R"json({
  "Error": {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "string"}},
    "additionalProperties": false
  },
  "OpenApi": {"type": "object", "required": ["openapi", "info", "paths"]},
  "v1.Distribution": {
    "type": "object",
    "required": ["items", "features", "classes"],
    "properties": {
      "items": {"type": "integer", "minimum": 0},
      "features": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "number"}}},
      "classes": {"type": "object", "additionalProperties": {"type": "number"}}
    }
  },
  "v1.Drift": {
    "type": "object",
    "required": ["model", "version", "window", "seen", "repeated", "reference_from_file", "reference_complete",
                 "drift", "reference", "recent"],
    "properties": {
      "model": {"type": "string"},
      "version": {"type": "integer", "minimum": 1},
      "window": {"type": "integer", "minimum": 1},
      "seen": {"type": "integer", "minimum": 0},
      "repeated": {"type": "integer", "minimum": 0},
      "reference_from_file": {"type": "boolean"},
      "reference_complete": {"type": "boolean"},
      "drift": {"type": "object", "additionalProperties": {"type": "number"}},
      "reference": {"$ref": "#/components/schemas/v1.Distribution"},
      "recent": {"$ref": "#/components/schemas/v1.Distribution"}
    }
  },
  "v1.Shadow": {
    "type": "object",
    "required": ["model", "version", "shadow"],
    "properties": {
      "model": {"type": "string"},
      "version": {"type": "integer", "minimum": 1},
      "shadow": {"type": "integer", "minimum": 1},
      "share": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
      "tolerance": {"type": "number", "minimum": 0},
      "compared": {"type": "integer", "minimum": 0},
      "agreed": {"type": "integer", "minimum": 0},
      "equal": {"type": "integer", "minimum": 0},
      "failed": {"type": "integer", "minimum": 0},
      "in_flight": {"type": "integer", "minimum": 0},
      "dropped": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
      "agreement": {"type": "number", "minimum": 0, "maximum": 1},
      "task": {"type": "string"},
      "mean_difference": {"type": "number", "minimum": 0},
      "largest_difference": {"type": "number", "minimum": 0},
      "last_disagreement": {"$ref": "#/components/schemas/v1.Disagreement"},
      "timed": {"type": "integer", "minimum": 1},
      "p50": {"type": "number", "minimum": 0},
      "p99": {"type": "number", "minimum": 0},
      "promote": {
        "type": "object",
        "required": ["rule", "state"],
        "properties": {
          "rule": {"type": "string"},
          "state": {"type": "string", "enum": ["measuring", "promoted", "refused"]},
          "time": {"type": "string", "format": "date-time"},
          "reason": {"type": "string"},
          "compared": {"type": "integer", "minimum": 1},
          "timed": {"type": "integer", "minimum": 0},
          "measures": {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}}
        }
      },
      "differing": {
        "type": "array",
        "maxItems": 16,
        "items": {"$ref": "#/components/schemas/v1.Disagreement"}
      }
    }
  },
  "v1.Disagreement": {
    "type": "object",
    "required": ["request", "time"],
    "properties": {
      "request": {"type": "string"},
      "time": {"type": "string", "format": "date-time"},
      "trace": {"type": "string"},
      "difference": {"type": "number", "minimum": 0},
      "error": {"type": "string"},
      "number": {"type": "integer", "minimum": 1},
      "picture_bytes": {"type": "integer", "minimum": 0}
    }
  },
  "v1.Samples": {
    "type": "object",
    "required": ["samples"],
    "properties": {
      "samples": {
        "type": "array",
        "maxItems": 64,
        "items": {
          "type": "object",
          "required": ["name", "type", "bytes"],
          "properties": {
            "name": {"type": "string"},
            "type": {"type": "string"},
            "bytes": {"type": "integer", "minimum": 1}
          }
        }
      }
    }
  },
  "v1.CaptureChoice": {
    "type": "object",
    "properties": {
      "enabled": {"type": "boolean"},
      "rate": {"type": "number", "minimum": 0, "maximum": 1},
      "models": {"type": "object", "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1}}
    },
    "additionalProperties": false
  },
  "v1.Capture": {
    "type": "object",
    "required": ["enabled", "rate", "models", "folder", "sink", "pixels", "bytes", "max_bytes", "max_age_seconds"],
    "properties": {
      "enabled": {"type": "boolean"},
      "rate": {"type": "number", "minimum": 0, "maximum": 1},
      "models": {"type": "object", "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1}},
      "folder": {"type": "string"},
      "sink": {"type": "string"},
      "pixels": {"enum": ["full", "hash", "none"]},
      "bytes": {"type": "integer", "minimum": 0},
      "max_bytes": {"type": "integer", "minimum": 0},
      "max_age_seconds": {"type": "integer", "minimum": 0}
    }
  },
  "v1.Load": {
    "type": "object",
    "required": ["time", "max_message_bytes", "grpc_port", "server_version", "memory", "gpus", "inflight", "states",
                 "models"],
    "properties": {
      "time": {"type": "number"},
      "max_message_bytes": {"type": "integer"},
      "grpc_port": {"type": "integer"},
      "server_version": {"type": "string"},
      "memory": {
        "type": "object",
        "required": ["resident_bytes", "total_bytes", "available_bytes"],
        "additionalProperties": {"type": "integer"}
      },
      "gpus": {
        "type": "array",
        "description": "The machine's GPUs, or MIG's instances of them, as its driver tells them; empty without one",
        "items": {
          "type": "object",
          "required": ["uuid", "used_bytes", "total_bytes", "utilization"],
          "properties": {
            "uuid": {"type": "string"},
            "used_bytes": {"type": ["integer", "null"]},
            "total_bytes": {"type": ["integer", "null"]},
            "utilization": {"type": ["number", "null"]}
          }
        }
      },
      "states": {
        "type": "array",
        "items": {
          "type": "object",
          "required": ["name", "version", "state", "step", "reason", "architecture", "device", "precision",
                       "max_batch_size", "load_seconds"],
          "properties": {
            "name": {"type": "string"},
            "version": {"type": "integer"},
            "state": {"enum": ["LOADING", "READY", "UNAVAILABLE"]},
            "step": {
              "type": ["object", "null"],
              "description": "What a model that is loading does; null for others",
              "required": ["name", "done", "of", "seconds"],
              "properties": {
                "name": {"enum": ["waiting", "checking", "precision", "reading", "trial", "warm_up"]},
                "done": {"type": "integer"},
                "of": {"type": "integer"},
                "seconds": {"type": "number", "description": "Since the load began"}
              }
            },
            "reason": {"type": "string"},
            "architecture": {"type": "string"},
            "device": {"type": "string"},
            "precision": {"type": "string"},
            "max_batch_size": {"type": "integer"},
            "load_seconds": {"type": "number"}
          }
        }
      },
      "inflight": {
        "type": "object",
        "description": "What open requests hold; `bytes` has those of this one, too.",
        "required": ["requests", "bytes", "decoded_bytes"],
        "additionalProperties": {"type": "integer"}
      },
      "models": {
        "type": "array",
        "items": {
          "type": "object",
          "required": ["name", "version", "queued", "answered", "failed", "failed_by_reason", "pictures", "passes",
                       "seconds", "passes_by_batch_size", "answered_by_seconds"],
          "properties": {
            "name": {"type": "string"},
            "version": {"type": "integer"},
            "queued": {"type": "integer"},
            "answered": {"type": "integer"},
            "failed": {"type": "integer"},
            "failed_by_reason": {"type": "object", "additionalProperties": {"type": "integer"}},
            "pictures": {"type": "integer"},
            "passes": {"type": "integer"},
            "seconds": {"type": "object", "additionalProperties": {"type": "number"}},
            "passes_by_batch_size": {"type": "object", "additionalProperties": {"type": "integer"}},
            "answered_by_seconds": {
              "type": "array",
              "items": {"type": "array", "items": {"type": ["number", "null"]}, "minItems": 2, "maxItems": 2}
            }
          }
        }
      }
    }
  },
  "v2.Live": {"type": "object", "required": ["live"], "properties": {"live": {"const": true}}},
  "v2.Ready": {"type": "object", "required": ["ready"], "properties": {"ready": {"const": true}}},
  "v2.ModelReady": {
    "type": "object",
    "required": ["name", "ready"],
    "properties": {"name": {"type": "string"}, "ready": {"const": true}}
  },
  "v2.Any": {"type": "object"},
  "v2.Datatype": {
    "enum": ["BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32",
             "FP64", "BF16", "BYTES"]
  },
  "v2.Shape": {"type": "array", "items": {"type": "integer", "minimum": -1}},
  "v2.Parameters": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
  "v2.ServerMetadata": {
    "type": "object",
    "required": ["name", "version", "extensions"],
    "properties": {
      "name": {"type": "string"},
      "version": {"type": "string"},
      "extensions": {"type": "array", "items": {"type": "string"}}
    }
  },
  "v2.TensorMetadata": <metadata tensor>,
  "v2.ModelMetadata": {
    "type": "object",
    "required": ["name", "versions", "platform", "inputs", "outputs"],
    "properties": {
      "name": {"type": "string"},
      "versions": {"type": "array", "items": {"type": "string"}},
      "platform": {"type": "string"},
      "inputs": {"type": "array", "items": {"$ref": "#/components/schemas/v2.TensorMetadata"}},
      "outputs": {"type": "array", "items": {"$ref": "#/components/schemas/v2.TensorMetadata"}}
    }
  },
  "v2.InferRequest": {
    "type": "object",
    "required": ["inputs"],
    "properties": {
      "id": {"type": "string"},
      "parameters": {"$ref": "#/components/schemas/v2.Parameters"},
      "inputs": {
        "type": "array",
        "items": <input tensor>
      },
      "outputs": {
        "type": "array",
        "items": {
          "type": "object",
          "required": ["name"],
          "properties": {
            "name": {"type": "string"},
            "parameters": {"$ref": "#/components/schemas/v2.Parameters"}
          }
        }
      }
    }
  },
  "v2.InferResponse": {
    "type": "object",
    "required": ["model_name", "model_version", "outputs"],
    "properties": {
      "id": {"type": "string"},
      "model_name": {"type": "string"},
      "model_version": {"type": "string"},
      "parameters": {
        "type": "object",
        "properties": {
          "attestation": {"type": "string"},
          "attestation_signature": {"type": "string", "contentEncoding": "base64"},
          "attestation_public_key": {"type": "string", "contentEncoding": "base64"}
        }
      },
      "outputs": {
        "type": "array",
        "items": <output tensor>
      }
    }
  },
  "v2.ModelConfig": {
    "type": "object",
    "required": ["name", "platform", "max_batch_size", "input", "output"],
    "properties": {
      "name": {"type": "string"},
      "platform": {"type": "string"},
      "max_batch_size": {"type": "integer"},
      "input": {"type": "array", "items": {"type": "object"}},
      "output": {"type": "array", "items": {"type": "object"}}
    }
  },
  "v2.Statistics": {
    "type": "object",
    "required": ["model_stats"],
    "properties": {
      "model_stats": {
        "type": "array",
        "items": {
          "type": "object",
          "required": ["name", "version", "last_inference", "inference_count", "execution_count", "inference_stats",
                       "batch_stats"],
          "properties": {
            "name": {"type": "string"},
            "version": {"type": "string"},
            "last_inference": {"type": "integer"},
            "inference_count": {"type": "integer"},
            "execution_count": {"type": "integer"},
            "inference_stats": {"type": "object"},
            "batch_stats": {"type": "array", "items": {"type": "object"}}
          }
        }
      }
    }
  },
  "v2.IndexRequest": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
  "v2.Index": {
    "type": "array",
    "items": {
      "type": "object",
      "required": ["name", "state", "reason"],
      "properties": {
        "name": {"type": "string"},
        "version": {"type": "string"},
        "state": {"enum": ["LOADING", "READY", "UNLOADING", "UNAVAILABLE"]},
        "reason": {"type": "string"}
      }
    }
  },
  "v2.LoadRequest": {
    "type": "object",
    "properties": {
      "parameters": {
        "type": "object",
        "properties": {"config": {"type": "string", "description": "A model configuration, as JSON"}}
      }
    }
  },
  "v2.UnloadRequest": {
    "type": "object",
    "properties": {
      "parameters": {"type": "object", "properties": {"unload_dependents": {"type": "boolean"}}}
    }
  },
  "v2.LogSettings": {
    "type": "object",
    "properties": {
      "log_file": {"type": "string"},
      "log_info": {"type": "boolean"},
      "log_warning": {"type": "boolean"},
      "log_error": {"type": "boolean"},
      "log_verbose_level": {"type": "integer", "minimum": 0},
      "log_format": {"type": "string"}
    }
  },
  "v2.RegisterRequest": {
    "type": "object",
    "required": ["key", "byte_size"],
    "properties": {
      "key": {"type": "string", "description": "A file in /dev/shm"},
      "offset": {"type": "integer", "minimum": 0},
      "byte_size": {"type": "integer", "minimum": 0}
    }
  },
  "v2.Regions": {
    "type": "array",
    "items": {
      "type": "object",
      "required": ["name", "key", "offset", "byte_size"],
      "properties": {
        "name": {"type": "string"},
        "key": {"type": "string"},
        "offset": {"type": "integer"},
        "byte_size": {"type": "integer"}
      }
    }
  },
  "v2.CudaRegisterRequest": {
    "type": "object",
    "required": ["raw_handle", "device_id", "byte_size"],
    "properties": {
      "raw_handle": {
        "type": "object",
        "description": "A cudaIpcMemHandle_t, in base64",
        "required": ["b64"],
        "properties": {"b64": {"type": "string"}}
      },
      "device_id": {"type": "integer", "minimum": 0},
      "byte_size": {"type": "integer", "minimum": 0}
    }
  },
  "v2.CudaRegions": {
    "type": "array",
    "items": {
      "type": "object",
      "required": ["name", "device_id", "byte_size"],
      "properties": {
        "name": {"type": "string"},
        "device_id": {"type": "integer"},
        "byte_size": {"type": "integer"}
      }
    }
  }
})json";

constexpr char kAnyShape[] = R"({"$ref": "#/components/schemas/v2.Shape"})";
constexpr char kKnownShape[] = R"({"type": "array", "items": {"type": "integer", "minimum": 0}})";
constexpr char kInputElements[] =
    R"({"type": "array", "description": "All elements, flat or nested like the shape",
        "items": {"type": ["number", "string", "boolean", "array"]}})";
constexpr char kOutputElements[] = R"({"type": "array", "items": {"type": ["number", "string", "boolean"]}})";

// The schema of a tensor, or of its description if `elements` is empty.
std::string TensorSchema(absl::string_view shape, absl::string_view elements) {
  std::string schema = absl::StrCat(
      R"({"type": "object", "required": ["name", "datatype", "shape"], "properties": {
          "name": {"type": "string"}, "datatype": {"$ref": "#/components/schemas/v2.Datatype"}, "shape": )",
      shape);
  if (!elements.empty()) {
    absl::StrAppend(&schema, R"(, "parameters": {"$ref": "#/components/schemas/v2.Parameters"}, "data": )",
                    elements);
  }
  return schema + "}}";
}

}  // namespace

absl::Span<const Operation> Operations() { return kOperations; }

const Operation* FindOperation(absl::string_view method, absl::string_view path) {
  const std::string of_default = absl::StrReplaceAll(path, {{"/versions/{version}", ""}});
  const auto* const found = std::find_if(
      std::begin(kOperations), std::end(kOperations),
      [&](const Operation& known) { return known.method == method && known.path == of_default; });
  return found == std::end(kOperations) ? nullptr : found;
}

std::string WrittenSchemas() {
  return absl::StrReplaceAll(kWrittenSchemas,
                             {{"<metadata tensor>", TensorSchema(kAnyShape, "")},
                              {"<input tensor>", TensorSchema(kKnownShape, kInputElements)},
                              {"<output tensor>", TensorSchema(kAnyShape, kOutputElements)}});
}

}  // namespace saccade::server
