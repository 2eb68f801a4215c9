#include "examples/compare_convergence/html_report.h"

#include <fmt/format.h>

#include "examples/compare_convergence/names.h"
#include "examples/compare_convergence/plots.h"
#include "examples/compare_convergence/tables.h"
#include "examples/support/number_text.h"
#include "examples/support/svg_plot.h"

namespace convergence {
namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1f2328; --paper: #ffffff; --line: #d5d9de; --soft: #59636e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --paper: #14171c; --line: #363c44; --soft: #9aa3ad; }
}
body { margin: 0 auto; padding: 1.5rem; max-width: 84rem; font: 16px/1.5 system-ui, sans-serif;
  color: var(--ink); background: var(--paper); }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
.soft, .notes { color: var(--soft); } .notes { font-size: .875rem; }
.warning { border-left: 4px solid #d9730d; padding-left: .75rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
thead th { color: var(--soft); font-weight: 600; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; font-size: .875rem; padding: 0; list-style: none; }
.sample { width: 30px; height: 10px; margin-right: .4rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(22rem, 1fr)); gap: 1rem; }
figure { margin: 0; } figcaption { font-size: .875rem; font-weight: 600; }
figure svg { width: 100%; height: auto; display: block; }
svg text { font-size: 11px; fill: var(--soft); } svg text.label { fill: var(--ink); }
svg .grid { stroke: var(--line); stroke-width: .7; } svg .frame { fill: none; stroke: var(--soft); }
svg .mark { stroke: var(--soft); stroke-dasharray: 1 4; stroke-width: 1.5; }
svg polyline { stroke-linejoin: round; }
)";

std::string element(std::string_view tag, std::string_view text) {
  return fmt::format("<{0}>{1}</{0}>\n", tag, example::escapeMarkup(text));
}

std::string htmlTable(const example::Cells& rows) {
  std::string html = "<div class=\"wide\"><table>\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    html += i == 0 ? "<thead><tr>" : "<tr>";
    for (const auto& cell : rows[i])
      html += fmt::format("<{0}>{1}</{0}>", i == 0 ? "th" : "td", example::escapeMarkup(cell));
    html += i == 0 ? "</tr></thead>\n<tbody>\n" : "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string htmlList(const std::vector<std::string>& sentences) {
  std::string html = "<ul class=\"notes\">\n";
  for (const auto& sentence : sentences) html += element("li", sentence);
  return html + "</ul>\n";
}

std::string legendOf(const Panel& panel, const Grid& grid) {
  std::string html = "<ul class=\"legend\">\n";
  const auto styles = stylesOf(panel, grid);
  for (std::size_t i = 0; i < panel.arms.size(); ++i)
    html += fmt::format("<li>{}{}</li>\n", example::svgSample(styles[i]),
                        example::escapeMarkup(shortArmName(grid.arms[panel.arms[i]])));
  return html + "</ul>\n";
}

std::string figure(const example::Plot& plot) {
  return fmt::format("<figure><figcaption>{}</figcaption>{}</figure>\n", example::escapeMarkup(plot.title),
                     example::svgPlot(plot));
}

bool oversubscribed(const Panel& panel, const Comparison& comparison) {
  for (const auto index : panel.arms)
    if (comparison.arms[index].oversubscribed) return true;
  return false;
}

std::string panelHtml(const Panel& panel, const Comparison& comparison) {
  const auto plots = plotsOf(panel, comparison);
  std::string html = element("h2", panelName(panel));
  if (plots.empty())
    return html + element("p", "Nothing to plot: no run here has come to its end without diverging.");
  html += legendOf(panel, comparison.grid);
  if (oversubscribed(panel, comparison))
    html +=
        "<p class=\"warning\">More workers than cores: here wall time does not show what workers on cores of "
        "their own would take.</p>\n";
  html += "<div class=\"plots\">\n";
  for (const auto& plot : plots) html += figure(plot);
  return html + "</div>\n";
}

std::string linkHtml(const Comparison& comparison) {
  if (!comparison.link) return "";
  auto html = element("h2", "Projected on a link of " + describe(*comparison.link)) +
              element("p",
                      "What each arm would take where its workers are joined by that link: seconds, and the "
                      "share of them spent computing. A calculation, not a measurement.") +
              htmlTable(linkCells(comparison, Detail::Full)) + "<div class=\"plots\">\n";
  for (const auto& panel : comparison.grid.panels)
    if (const auto plot = linkPlotOf(panel, comparison); example::drawsAnything(plot))
      html += fmt::format("<div>{}{}{}</div>\n", element("h3", panelName(panel)),
                          legendOf(panel, comparison.grid), figure(plot));
  return html + "</div>\n" + htmlList(linkAssumptions());
}

const std::vector<std::string> kPlotNotes{
    "Lines are means over the seeds, bands one standard deviation up and down. Hold the pointer on a line "
    "for its name.",
    "Test accuracy and test loss are of the merged model. The training loss is that of the replicas on the "
    "batches they learnt from, before they were merged, so it flatters arms that merge seldom.",
    "The accuracy axis is spaced by the logarithm of the error; the dotted line is the target.",
    "One worker sends nothing and has no distance: it is not in those plots, nor are replicas that are "
    "equal.",
    "Bytes are the payload that one worker contributed to the exchanges, without what a network adds."};

}  // namespace

std::string htmlReport(const Comparison& comparison) {
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"/>\n<title>Model averaging against synchronous "
      "training</title>\n<style>{}</style>\n</head>\n<body>\n",
      kStyle);
  html += element("h1", "Model averaging against synchronous training");
  for (const auto& sentence : {comparison.data, comparison.origin, comparison.training, comparison.testing})
    if (!sentence.empty()) html += element("p", sentence);
  if (!comparison.complete())
    html += fmt::format("<p class=\"warning\">Not finished: {} of {} runs so far.</p>\n",
                        comparison.runs.size(), comparison.grid.runs());
  html +=
      htmlTable(summaryCells(comparison, Detail::Full)) + htmlList(summaryNotes(comparison, Detail::Full));
  for (const auto& panel : comparison.grid.panels)
    if (const auto cells = strategyCells(panel, comparison); !cells.empty()) html += htmlTable(cells);
  for (const auto& panel : comparison.grid.panels) html += panelHtml(panel, comparison);
  html += element("h2", "How to read the plots") + htmlList(kPlotNotes) + linkHtml(comparison);
  html += element("h2", "Options");
  if (!comparison.made.empty()) html += element("p", comparison.made);
  html += "<p class=\"soft\">";
  for (const auto& option : comparison.recipe)
    html += fmt::format("<code>{}</code> ", example::escapeMarkup(option));
  return html + "</p>\n</body>\n</html>\n";
}

}  // namespace convergence
