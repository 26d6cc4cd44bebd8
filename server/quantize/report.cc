#include "server/quantize/report.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace saccade::server {
namespace {

// Smaller shares would be printed with an exponent.
constexpr double kLeastPercent = 0.01;

constexpr char kStyle[] =
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2rem .6rem;border-bottom:1px "
    "solid #ddd}"
    "td.n{text-align:right;white-space:nowrap}td.b{width:40%}.bar{background:#3572b0;height:.8rem}"
    ".kept .bar{background:#c2571a}code{font-size:.9em}"
    "@media (prefers-color-scheme:dark){body{background:#181818;color:#ddd}td,th{border-color:#444}}";

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string Code(const std::string& text) { return absl::StrCat("<code>", Escaped(text), "</code>"); }

// The weights of a unit, a line each, below the name of their module.
std::string Weights(const models::UnitCost& unit) {
  std::vector<std::string> lines;
  if (!unit.module.empty()) lines.push_back(absl::StrCat("module ", Code(unit.module), ":"));
  for (const std::string& layer : unit.layers) lines.push_back(Code(layer));
  return absl::StrJoin(lines, "<br>");
}

std::string Row(const models::UnitCost& unit, double largest) {
  const double width = largest > 0 ? 100 * unit.loss / largest : 0;
  return absl::StrCat(
      "<tr", unit.quantized ? "" : " class=\"kept\"", "><td>", Weights(unit), "</td><td>",
      unit.quantized ? "int8" : "higher precision", "</td><td class=\"n\">", Escaped(PercentText(unit.loss)),
      absl::StrFormat("</td><td class=\"b\"><div class=\"bar\" style=\"width:%.1f%%\"></div></td></tr>\n",
                      width));
}

// A figure that gets better loses a negative share.
std::string Lost(double share) {
  return share < 0 ? PercentText(-share) + " gained" : PercentText(share) + " lost";
}

std::string Explanation(const models::QuantizeReport& report) {
  if (!report.figure) {
    return "The answers are compared with those in fp32 on the same items, in the terms of the task. That "
           "is a distance, not an accuracy: labels were not used.";
  }
  return absl::StrCat("The figure is measured on labelled items that the ranges were not measured on. ",
                      report.figure->is_error ? "A smaller one is better. " : "",
                      "Which layers are left out first goes by the distance of the answers, below.");
}

}  // namespace

std::string PercentText(double share) {
  const double percent = 100 * share;
  if (percent > 0 && percent < kLeastPercent) return absl::StrFormat("< %g %%", kLeastPercent);
  return percent < 1 ? absl::StrFormat("%.2g %%", percent) : absl::StrFormat("%.3g %%", percent);
}

std::string LossText(const models::QuantizeReport& report, size_t items) {
  if (!report.figure) {
    return absl::StrCat(PercentText(report.loss), " of the answers to ", items,
                        " items change (all layers: ", PercentText(report.loss_of_all), ")");
  }
  const models::FigureReport& figure = *report.figure;
  return absl::StrCat(figure.name, " is ", models::FigureText(figure.int8), " in int8 and ",
                      models::FigureText(figure.float32), " in float32 on ", figure.items,
                      " held-out items: ", Lost(report.loss), " (all layers: ", Lost(report.loss_of_all),
                      ")");
}

std::string QuantizeReportPage(const ReportInput& input, const models::QuantizeReport& report) {
  std::vector<models::UnitCost> units = report.units;
  std::stable_sort(units.begin(), units.end(),
                   [](const models::UnitCost& a, const models::UnitCost& b) { return a.loss > b.loss; });
  std::string page =
      absl::StrCat("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>",
                   Escaped(input.model), " in int8</title><style>", kStyle, "</style></head><body>\n<h1>",
                   Escaped(input.model), " in int8</h1>\n<p><code>", Escaped(input.architecture),
                   "</code>, from <code>", Escaped(input.weights), "</code>, measured on ", input.items,
                   " items; ranges by ", models::RangeMethodName(input.method), ".</p>\n<table>\n");
  const auto line = [&](const std::string& name, const std::string& value) {
    absl::StrAppend(&page, "<tr><td>", name, "</td><td class=\"n\">", Escaped(value), "</td></tr>\n");
  };
  line("layers in int8", absl::StrCat(report.quantized_layers(), " of ", report.layers()));
  if (report.figure) {
    const models::FigureReport& figure = *report.figure;
    line(figure.name + " in float32", models::FigureText(figure.float32));
    line(figure.name + " in int8 with these layers", models::FigureText(figure.int8));
    line(figure.name + " in int8 with all layers", models::FigureText(figure.int8_of_all));
    line("held-out items with labels", absl::StrCat(figure.items));
  }
  const auto cost = [&](double share) { return report.figure ? Lost(share) : PercentText(share); };
  const std::string what = report.figure ? "share of " + report.figure->name : "answers changed";
  line(what + " with these layers", cost(report.loss));
  line(what + " with all layers in int8", cost(report.loss_of_all));
  line("allowed (--keep-within)", PercentText(input.keep_within));
  absl::StrAppend(
      &page, "</table>\n<p>", Explanation(report),
      "</p>\n<h2>Layers</h2>\n<p>What changes of the answers if the weights of a row alone are in int8, the "
      "costliest first. The layers of a module are computed in one pass if all of them are in int8, so they "
      "are in int8 together or not at all.</p>\n<table>\n"
      "<tr><th>weights</th><th>served in</th><th>answers changed</th><th></th></tr>\n");
  for (const models::UnitCost& unit : units) absl::StrAppend(&page, Row(unit, units.front().loss));
  return absl::StrCat(page, "</table>\n</body></html>\n");
}

}  // namespace saccade::server
