#include "client/cli/commands/flags.h"

#include <cmath>

#include "client/cli/commands/request_options.h"

namespace saccade::client {
namespace {

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

// Adds --format, --json and --no-color. `formats` must begin with text and json.
void AddFormats(CLI::App* command, Format& format, Console& console, const Formats& formats,
                const std::string& description) {
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

}  // namespace

CLI::Validator NumberBetween(double min, double max) {
  const CLI::Range range(min, max);
  return {[range](std::string& text) {
            // Comparisons, such as those of Range, let NaN pass.
            double number = 0;
            if (CLI::detail::lexical_cast(text, number) && std::isnan(number))
              return text + " is not a number";
            return range(text);
          },
          range.get_description()};
}

void AddConnection(CLI::App* command, Connection& connection) {
  command->add_option("--url", connection.url, "The daemon's gRPC address, HOST:PORT")
      ->envname("SACCADE_URL")
      ->capture_default_str();
  command->add_option("--timeout", connection.timeout_seconds, "Seconds one call may take")
      ->check(NumberBetween(0.001, 86400.0))
      ->capture_default_str();
  command
      ->add_option("--max-message-bytes", connection.max_message_bytes,
                   "Maximum size of a request or response; the daemon has a limit of its own")
      ->check(CLI::Range(int64_t{1}, int64_t{INT32_MAX}))
      ->capture_default_str();
  AddTls(command, connection);
}

void AddFormat(CLI::App* command, Format& format, Console& console) {
  AddFormats(command, format, console, {{"text", Format::kText}, {"json", Format::kJson}},
             "text: a table; json: one versioned document");
}

void AddAnswerFormat(CLI::App* command, Format& format, Console& console, const Formats& more,
                     const std::string& about_more) {
  Formats formats = {{"text", Format::kText}, {"json", Format::kJson}, {"jsonl", Format::kJsonLines}};
  formats.insert(formats.end(), more.begin(), more.end());
  AddFormats(
      command, format, console, formats,
      "text: a table; json: one versioned document; jsonl: one line per result, as they arrive" + about_more);
}

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
                 const std::string& output, const std::string& description) {
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

void AddTiles(CLI::App* command, PicturesCommand& options) {
  command
      ->add_option(
          "--tiles", options.tiles,
          "SIZE:OVERLAP: cuts each picture into squares of SIZE pixels that share OVERLAP pixels, at most "
          "half of SIZE; whole: replaces the model's own tiles by the whole picture")
      ->check([](const std::string& text) {
        return ParseTiles(text) ? std::string() : "expected SIZE:OVERLAP, as in 640:64, or whole";
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

void AddChoice(CLI::App* command, FindCommand& options, const std::string& each) {
  command->add_option("--score-threshold", options.score_threshold, "Omit results with a lower score")
      ->check(NumberBetween(0.0, 1.0));
  command->add_option("--top-k", options.top_k, "Maximum number per " + each + ", best first; 0 for all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--class", options.classes, "Only this class, by index or name; may be repeated")
      ->expected(1)
      ->take_all();
}

}  // namespace saccade::client
